#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/background_writer.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_parts.h"
#include "train/state/training_snapshot.h"
#include "train/state/worker_file.h"

// Writing checkpoints while training goes on. Each worker has one writer, a thread, which is at one
// file or checkpoint at a time:
//
//   chief          ChiefCheckpoints   model, optimizer, state.json, its own part; waits for the
//                                     parts of the others and commits all of it together
//   other workers  WorkerParts        worker-<rank>.safetensors, into the folder where the chief
//                                     waits
//
// To save is first to *fill*: the strategy copies its state, which takes the time of a copy and is
// all that training stands still for; then the copy is written in the background. Who decides that
// it is time, and who takes part, is SessionCheckpoints' business; how the parts meet on the disk
// is told in checkpoint/checkpoint_parts.h. A checkpoint or part that cannot be written is a
// warning, never the end of a training; the checkpoints before stay as they were.
//
// Both live in WorkerLife, across groups: what is being written when a group ends is written to its
// end. But a chief that waits for a part of a worker that was lost, or is not chief any more, gives
// that checkpoint up. For the worker's own thread.

namespace cohort::training {

/// Copies everything into a state whose memory it may use again.
using FillState = std::function<void(tensor::TrainingState& state)>;

/// Whether a run has checkpoints beside the one of where it was stopped.
bool asks_for_checkpoints(const CheckpointOptions& options);

/// The chief's checkpoints, in the folder `checkpoints` of the run: when one is due, and writing it
/// while training goes on. What becomes of each is said in the log.
///
/// When another worker becomes chief, what is being written goes on, unless a part of another
/// worker is still missing: nobody waits for a disk to form a group. The new chief's checkpoints
/// wait, in the background too, until the folder's lock is free; one of a worker that is not chief
/// any more and has not got the lock by then is left out, because it would come after a newer one.
class ChiefCheckpoints {
 public:
  using Fill = FillState;

  /// `job` outlives it.
  ChiefCheckpoints(const std::filesystem::path& run_dir, const Job& job);

  /// After every step: whether it is time for a checkpoint and the one before is written. (While it
  /// is not, the new one waits, and is due at the first step after.) What is in the folder counts
  /// as saved; where there is nothing, the step before the first one asked about.
  bool due(std::int64_t step, Clock::time_point now = Clock::now());

  /// Waits until the one before is written, fills, and writes in the background. What `others`
  /// write of it is waited for there.
  void save(const CheckpointPlace& place, Model& model, const Fill& fill,
            checkpoint::OtherParts others = {});

  /// Fills and writes; returns when it is on the disk. Throws Error where it is not.
  void save_now(const CheckpointPlace& place, Model& model, const Fill& fill,
                checkpoint::OtherParts others = {});

  /// This worker is chief, or not any more.
  void take_over();
  void hand_over() { has_duty_ = false; }

  /// Whoever has not written its part by then will not be waited for.
  ~ChiefCheckpoints() { ends_ = true; }

  /// Returns when nothing is being written any more. Throws Error(timeout) after kLongestWork.
  void wait_until_written();

  /// After the last step: a checkpoint of the end, where the job asks for checkpoints at all.
  void finish(const CheckpointPlace& place, Model& model, const Fill& fill,
              checkpoint::OtherParts others = {});

 private:
  void fill_snapshot(const CheckpointPlace& place, Model& model, const Fill& fill,
                     checkpoint::OtherParts others);
  std::filesystem::path write();
  void report_finished();

  const Job& job_;
  checkpoint::CheckpointFolder folder_;
  TrainingSnapshot snapshot_;               // The writer's while it is busy,
  checkpoint::OtherParts others_;           // like this.
  std::optional<std::int64_t> saved_step_;  // The step asked about when the last one was filled.
  std::atomic<bool> has_duty_ = true;       // Read by the writer too,
  std::atomic<bool> ends_ = false;          // like this.
  std::int64_t asked_step_ = 0;
  Clock::time_point saved_at_ = Clock::now();
  checkpoint::BackgroundWriter
      writer_;  // The last member: its end waits for a job that uses the others.
};

/// The parts of checkpoints that a worker other than the chief writes. Of one that cannot be
/// written the chief is told, so that it does not wait for it.
class WorkerParts {
 public:
  using Fill = FillState;

  /// `job` outlives it.
  explicit WorkerParts(const Job& job) : job_(job) {}

  /// Fills, which takes the time of a copy, and writes in the background. Where the part before is
  /// still being written, this one is refused: nobody waits for a disk.
  void save(const checkpoint::JointCheckpoint& joint, int rank, Model& model, const Fill& fill);

  /// Returns when it is on the disk, or the chief was told that it is not.
  void save_now(const checkpoint::JointCheckpoint& joint, int rank, Model& model, const Fill& fill);

  /// Returns when nothing is being written any more, or after kLongestWork.
  void wait_until_written();

 private:
  static void refuse(const checkpoint::JointCheckpoint& joint, int rank, const std::string& why);
  checkpoint::CheckpointContent::File file_of(const checkpoint::JointCheckpoint& joint,
                                              int rank) const;
  void fill_snapshot(Model& model, const Fill& fill);
  void report_finished();

  const Job& job_;
  tensor::TrainingState state_;  // The writer's while it is busy,
  StateNames names_;             // like its names.
  checkpoint::BackgroundWriter
      writer_;  // The last member: its end waits for a job that uses the others.
};

}  // namespace cohort::training
