#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <filesystem>
#include <functional>

#include "checkpoint/background_writer.h"
#include "checkpoint/checkpoint_parts.h"
#include "train/state/worker_file.h"

namespace cohort {

/// The parts of checkpoints that a worker other than the chief writes: worker-<rank>.safetensors,
/// into the folder where the chief waits for them. One that cannot be written is a warning, the
/// chief is told, and training goes on. For the worker's own thread.
class WorkerParts {
 public:
  using Fill = std::function<void(TrainingState& state)>;

  explicit WorkerParts(const Job& job) : job_(job) {}

  /// Fills, which takes the time of a copy, and writes in the background. Where the part before is
  /// still being written, this one is refused: nobody waits for a disk.
  void save(const JointCheckpoint& joint, int rank, Model& model, const Fill& fill);

  /// Returns when it is on the disk, or the chief was told that it is not.
  void save_now(const JointCheckpoint& joint, int rank, Model& model, const Fill& fill);

  /// Returns when nothing is being written any more, or after kLongestWork.
  void settle();

 private:
  static void refuse(const JointCheckpoint& joint, int rank, const std::string& why);
  CheckpointContent::File file_of(const JointCheckpoint& joint, int rank) const;
  void fill_snapshot(Model& model, const Fill& fill);
  void report_finished();

  const Job& job_;
  TrainingState state_;      // The writer's while it is busy,
  StateNames names_;         // like its names.
  BackgroundWriter writer_;  // The last member: its end waits for a job that uses the others.
};

}  // namespace cohort
