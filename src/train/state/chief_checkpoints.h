#pragma once

#include <cohort/job.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "checkpoint/background_writer.h"
#include "checkpoint/checkpoint_folder.h"
#include "train/state/checkpoint_state.h"

namespace cohort {

/// Whether a run has checkpoints beside the one of where it was stopped.
bool asks_for_checkpoints(const CheckpointOptions& options);

/// The chief's checkpoints, in the folder `checkpoints` of the run: when one is due, and writing it
/// while training goes on. One that could not be written is a warning, and the next is tried; what
/// becomes of each is said in the log. For the chief's own thread.
///
/// When another worker becomes chief, what is being written goes on: nobody waits for a disk to
/// form a group. The new chief's checkpoints wait, in the background too, until the folder's lock
/// is free; one of a worker that is not chief any more and has not got the lock by then is left
/// out, because it would come after a newer one.
class ChiefCheckpoints {
 public:
  /// Copies everything into a state whose memory it may use again.
  using Fill = std::function<void(TrainingState& state)>;

  ChiefCheckpoints(const std::filesystem::path& run_dir, const Job& job);

  /// After every step: whether it is time for a checkpoint and the one before is written. (While it
  /// is not, the new one waits, and is due at the first step after.) What is in the folder counts
  /// as saved; where there is nothing, the step before the first one asked about.
  bool due(std::int64_t step, Clock::time_point now = Clock::now());

  /// Fills, which takes the time of a copy, and writes in the background.
  /// What `others` write of it is waited for there.
  void save(const CheckpointPlace& place, Model& model, const Fill& fill, OtherParts others = {});

  /// Fills and writes; returns when it is on the disk. Throws Error where it is not.
  void save_now(const CheckpointPlace& place, Model& model, const Fill& fill,
                OtherParts others = {});

  /// This worker is chief, or not any more.
  void take_over();
  void hand_over() { has_duty_ = false; }

  /// Whoever has not written its part by then will not be waited for.
  ~ChiefCheckpoints() { ends_ = true; }

  /// Returns when nothing is being written any more. Throws Error(timeout) after kLongestWork.
  void settle();

  /// After the last step: a checkpoint of the end, where the job asks for checkpoints at all.
  void finish(const CheckpointPlace& place, Model& model, const Fill& fill, OtherParts others = {});

 private:
  void fill_snapshot(const CheckpointPlace& place, Model& model, const Fill& fill,
                     OtherParts others);
  std::filesystem::path write();
  void report_finished();

  const Job& job_;
  CheckpointFolder folder_;
  TrainingSnapshot snapshot_;               // The writer's while it is busy,
  OtherParts others_;                       // like this.
  std::optional<std::int64_t> saved_step_;  // The step asked about when the last one was filled.
  std::atomic<bool> has_duty_ = true;       // Read by the writer too,
  std::atomic<bool> ends_ = false;          // like this.
  std::int64_t asked_step_ = 0;
  Clock::time_point saved_at_ = Clock::now();
  BackgroundWriter writer_;  // The last member: its end waits for a job that uses the others.
};

}  // namespace cohort
