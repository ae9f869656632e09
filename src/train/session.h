#pragma once

#include <memory>
#include <optional>

#include "data/batch_loader.h"
#include "data/evaluation_batches.h"
#include "launch/seat.h"
#include "train/loss.h"
#include "train/step_log.h"
#include "train/validation.h"
#include "train/worker_life.h"

namespace cohort {

/// One worker's training within one group of workers: model, strategy and loop. When a peer is lost
/// its calls throw; what was learned can then still be carried over to the next group.
class Session {
 public:
  /// `start` is what this worker brings along; null where it has nothing. All workers of the group
  /// make theirs together.
  Session(WorkerLife& life, const View& view, Seat::Group& group, const TrainingState* start);

  enum class End { finished, paused };

  /// Trains until all is done or somebody wants a pause.
  End run();

  std::int64_t steps_done() const { return step_; }
  /// Whether every worker has something to carry over, not only the chief.
  bool all_carry() const { return !pace_.lockstep || pace_.own_state; }

  /// See Strategy::carry_state.
  void carry(TrainingState& state);

  /// Tells the others that this worker is not with them any more.
  void leave() noexcept;

 private:
  bool is_chief() const { return rank_ == 0; }
  bool writes_run_folder() const { return is_chief() && !life_.run.run_dir.empty(); }
  std::unique_ptr<Strategy> make_strategy_with_all(bool watched, const TrainingState* start);
  void come_together(bool watched);
  StrategyContext strategy_context(const TrainingState* start);
  BatchOptions loader_options() const;
  BatchLoader::Preparation preparation() const;
  void agree_on_validation();
  void take_or_hand_over_duty();

  void meet();
  bool next_step();
  bool stops_alone();
  StepOutcome train_step();
  torch::Tensor weighted_loss(const LoadedBatch& loaded);
  torch::Tensor loss_of_no_rows(const LoadedBatch& loaded);
  double learning_rate_of(std::int64_t step) const;
  double epochs_done() const;
  void count_rows();
  void after_step(const StepOutcome& outcome);
  void save_checkpoint_if_due();
  CheckpointPlace checkpoint_place() const;

  std::int64_t epochs_at(std::int64_t step) const;
  /// Whether the validation set is to be looked at after so many steps.
  bool validates_at(std::int64_t step) const;
  void validate_finished_epoch();
  void run_validation(EvaluationBatches& batches, const SumOverWorkers& sum);

  [[noreturn]] void stop_diverged(int rank);
  bool anybody_stopped();
  bool save_model_file();
  bool ends() const;
  void save_before_end();
  void log_last_step();
  std::uint64_t bytes_sent() const;
  void finish();
  void fill_result();

  WorkerLife& life_;
  const Job& job_;
  View view_;
  Engine& engine_;
  Store& store_;
  int rank_;
  std::unique_ptr<Optimizer> optimizer_;
  LossFunction loss_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Strategy> strategy_;
  Pace pace_;
  std::int64_t step_;  // Steps done, or within a step the number of this one.
  BatchLoader loader_;
  EvaluationBatches evaluation_;
  std::optional<StepLog> step_log_;

  bool stopped_ = false;
  std::optional<Claim> next_;  // The next piece of work, where it has come.
  bool left_ = false;
  std::int64_t part_ = 0;      // Of this step, where they are handed out.
  std::int64_t own_rows_ = 0;  // Of this step.
  double wait_before_ = 0;     // This step.
  Clock::time_point step_began_;
  BatchPlace place_;
  std::optional<double> last_loss_;
};

}  // namespace cohort
