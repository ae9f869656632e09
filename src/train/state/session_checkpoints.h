#pragma once

#include <cstdint>
#include <string>

#include "cluster/membership.h"
#include "strategy/strategy.h"
#include "train/state/checkpoint_writers.h"
#include "train/worker_life.h"

namespace cohort::training {

/// One worker's side of the checkpoints of one group of workers: when one is due, and who writes
/// what of it. Three ways:
///
/// *Alone*: nobody but the chief has anything to save, or some worker cannot reach the run folder.
/// The chief saves when it is due.
///
/// *Agreed*: every worker has something of its own and all come together in a step, or at a push
/// (StateKeeper::all_save(), no work handed out). The chief's wish travels with its vote; all
/// save after the step whose outcome says so.
///
/// *Asked*: work is handed out and nobody waits for anybody. The chief saves and leaves a question
/// in the control block; every other worker answers between two of its pieces. After meet() whoever
/// has not yet answered does.
///
/// In the second and third way everybody writes its own file in the background, and the chief
/// commits them together. They find each other's files without asking, by the name of the *attempt*
/// (checkpoint/checkpoint_parts.h):
///
///   generation  the group's number. A later group's files are another attempt's.
///   token       drawn by the chief when the group begins: a run that was killed and started again
///               has the same generations, but not the same tokens.
///   number      of the checkpoint within the group. Every worker counts for itself: by what was
///               voted, or by what was asked. So all count the same.
///
/// A part of an attempt that nobody commits (a worker was lost, its disk was full) is never taken
/// for another's: the chief gives up, says so, and the next checkpoint is another attempt.
///
/// One object per worker and group; for the worker's own thread.
class SessionCheckpoints {
 public:
  /// All workers of the group make theirs together; `strategy` and `model` must outlive it.
  SessionCheckpoints(WorkerLife& life, const cluster::View& view, strategy::Strategy& strategy,
                     Model& model);

  /// Before the step that brings the training to `step`: whether this worker's vote asks for a
  /// checkpoint of it.
  bool wants(std::int64_t step);

  /// Whether the chief will copy everything after that step.
  bool is_due(std::int64_t step);

  /// After a step that nobody stopped at.
  void after_step(std::int64_t step, const strategy::StepOutcome& outcome);

  /// After Strategy::meet(): whoever was asked and has not answered does.
  void after_meet();

  /// The run ends here, or may: all save, and the chief returns when it is on the disk. Throws on
  /// the chief where it is not. All call it.
  void save_now();
  /// The same after the last step, where the job asks for checkpoints; failing is a warning.
  void finish();

  /// Whether others have a part, so that all must agree that there is a checkpoint.
  bool is_joint() const { return way_ != Way::alone; }

 private:
  enum class Way { alone, agreed, asked };

  bool is_chief() const { return rank_ == 0; }
  bool writes() const { return is_chief() && !life_.run.run_dir.empty(); }
  Way agree();
  CheckpointPlace place() const;
  bool is_incomplete() const;
  checkpoint::OtherParts nobody() const;
  checkpoint::OtherParts others() const;
  checkpoint::JointCheckpoint joint(std::uint32_t number) const;
  void save_in_background();
  void save_part();
  void save_part_now();
  ChiefCheckpoints::Fill chiefs_fill();
  WorkerParts::Fill own_fill();
  void answer();

  WorkerLife& life_;
  const cluster::View view_;
  strategy::Strategy& strategy_;
  Model& model_;
  const int rank_;
  std::uint32_t token_ = 0;  // Of this group: nobody else's parts have it.
  Way way_;
  std::uint32_t number_ = 0;  // Of the last checkpoint that was begun: the same on all workers.
};

}  // namespace cohort::training
