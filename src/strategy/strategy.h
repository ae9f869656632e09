#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/activity.h"
#include "base/deadline.h"
#include "base/phases.h"
#include "base/traffic.h"
#include "cluster/store.h"
#include "cluster/work_board.h"
#include "collective/elements.h"
#include "optimizer/optimizer.h"
#include "tensor/flat_space.h"
#include "tensor/training_state.h"
#include "transport/engine.h"

namespace cohort::strategy {

/// What one worker brings to a step, known once its last forward pass is done.
struct Vote {
  double loss = 0;    ///< This worker's share of the global batch's mean loss.
  bool stop = false;  ///< This worker was asked to stop after this step.
  bool save = false;  ///< Where StateKeeper::all_save(): wants a checkpoint of this step by all.
};

/// How to apply a step's gradients.
struct UpdatePlan {
  double lr = 0;
  std::int64_t step = 0;   ///< The first is 0.
  double clip_norm = 0;    ///< 0: no clipping.
  bool want_norm = false;  ///< Whether StepOutcome::gradient_norm is looked at.
  /// Where work is handed out: the worker will go on at once, so the next piece may come with the
  /// answer to this one.
  bool wants_next = false;
};

/// What became of a step. In lockstep it is the same on all workers.
struct StepOutcome {
  double loss = 0;    ///< In lockstep the mean over the global batch, otherwise Vote::loss.
  bool stop = false;  ///< Somebody was asked to stop.
  /// Where StateKeeper::all_save() and no work is handed out: somebody wants a checkpoint. It is
  /// so for all workers after the same step.
  bool save = false;
  int diverged_rank = -1;  ///< A rank whose loss was not finite: the step was not applied.
  double gradient_norm = 0;
  std::optional<double> staleness = {};  ///< Updates by others that this step's gradient missed.
  std::optional<double> consensus_distance = {};  ///< From what peers sent, relative to the norm.
  std::optional<cluster::Claim> next = {};  ///< The next piece of work, where one has come with it.

  /// In lockstep: adds a worker's vote. All workers count all votes, by ascending rank.
  void count(int rank, const Vote& vote);
};

/// What a strategy tells of itself, at any time.
struct StrategyReport {
  std::string words;  ///< One line for the user: what was picked and why.
  Traffic traffic;    ///< So far.
};

/// Hands out parts of the steps' batches to whoever is free.
class WorkSource {
 public:
  virtual ~WorkSource() = default;

  /// The next piece, or nothing when all is done or somebody was asked to stop. Not asked where the
  /// last step's outcome had one.
  virtual std::optional<cluster::Claim> next_work() = 0;
};

/// What a training has learned, between the steps: where it begins, what is saved of it, and what
/// goes along into the next group of workers. Every strategy keeps its own; who asks is whoever
/// makes groups and checkpoints, not the step.
///
/// Three ways out of a strategy: save_state() by the chief and save_own_state() by the others make
/// a checkpoint, from which any strategy goes on with any number of workers (DealtState); and
/// carry_state() goes to the next group of the same run, also after a death in the middle of a
/// step.
class StateKeeper {
 public:
  virtual ~StateKeeper() = default;

  /// The step to go on with: StrategyContext::start's, the same on all workers.
  virtual std::int64_t first_step() const = 0;

  /// Everything, for a checkpoint. Between steps; needs no other worker's help, so one alone may
  /// call it. Where work is handed out, others may go on meanwhile.
  virtual void save_state(tensor::TrainingState& state) = 0;

  /// Whether every worker has something of its own that belongs into a checkpoint, beside what the
  /// chief saves.
  virtual bool all_save() const { return false; }

  /// Where all_save(): what this worker has for a checkpoint beside the one that saves
  /// everything. Between steps, needs nobody's help. In step all call it, or save_state(), after
  /// the same step (StepOutcome::save); elsewhere whenever they come to it. Goes on from it, with
  /// as many workers, as StrategyContext::start of the worker with the same rank.
  virtual void save_own_state(tensor::TrainingState& state) { save_state(state); }

  /// Whether every worker has something of its own to carry over, not only the chief of the next
  /// group.
  virtual bool all_carry() const = 0;

  /// What this worker takes along into the next group of workers, as StrategyContext::start there.
  /// Called at most once, last of all, between steps or after any call here has thrown, when no
  /// other worker of this group makes calls any more: a step that some had begun to apply is then
  /// wholly applied or wholly undone.
  virtual void carry_state(tensor::TrainingState& state) { save_state(state); }
};

/// How workers make one model out of what each has learned: it combines and it updates. One object
/// per worker; it owns the memory the model lives in. For every step there are
///
///   space().begin_step(), forward, backward …, begin_last_backward(vote), backward, finish_step()
///
/// of which a Stepper (train/loop/stepper.h) makes all but the last, which is the loop's; and once
/// all steps are done meet(). How its workers go through the steps (in lockstep, alone, by pieces
/// that are handed out) is in its row of kinds/strategy_table.h. All calls come from the thread
/// that trains. Calls that wait for others throw Error(peer_lost) or Error(timeout); after that it
/// makes no more steps, and what is left are report(), close() and carry_state().
class Strategy : public StateKeeper {
 public:
  /// The model, moved to the strategy's memory, with equal values on all workers at first.
  virtual tensor::FlatSpace& space() = 0;

  virtual void begin_last_backward(const Vote& vote) = 0;

  /// Combines the workers' gradients and updates the parameters, or makes this worker's own step.
  virtual StepOutcome finish_step(const UpdatePlan& plan) = 0;

  /// Where it hands out work; null where worker r has part r of every step.
  virtual WorkSource* work() { return nullptr; }

  /// All workers call it after their last step: from then on all have the same model, buffers
  /// included. In lockstep they have it anyway.
  virtual void meet() {}

  /// Replaces numbers by their sum over all workers: for layers and validation, not for gradients.
  virtual void sum_over_workers(collective::Numbers numbers) = 0;

  /// Whether it is so with any worker. All call it together.
  bool any_worker(bool own);
  /// Returns when all workers have called it.
  void wait_for_workers() { any_worker(false); }

  virtual StrategyReport report() const = 0;

  /// Tells the others that this worker is done or has failed. Does not throw. After it, and also
  /// after a call that threw, a strategy can be destroyed without waiting for anybody.
  virtual void close() noexcept = 0;
};

/// What a strategy is made of.
struct StrategyContext {
  Model& model;
  transport::Engine& engine;
  cluster::Store& store;  ///< Where tasks of the run find each other.
  const optimizer::Optimizer& optimizer;
  PhaseClock& phases;
  Activity* activity = nullptr;  ///< Where waits for others are shown; may be null.
  StrategyOptions options;
  OptimizerOptions optimizer_options;  ///< What `optimizer` was made of.
  /// What this worker goes on from; null: it has nothing. Rank 0's counts for all, or where workers
  /// have models of their own for those without any. Without rank 0's the training begins with the
  /// model as it is.
  const tensor::TrainingState* start = nullptr;
  std::uint64_t seed = 0;
  std::int64_t steps = 0;       ///< Of the whole job.
  std::int64_t parts = 1;       ///< Of a step's batch, where work is handed out; fixed for a job.
  std::int64_t generation = 0;  ///< Of the membership: the number of this group of workers.
  std::int64_t steps_per_epoch = 1;
  std::int64_t samples = 0;  ///< Of a step that one worker has at most; 0: it is not known.
  int servers = 0;
  Timeout timeout;  ///< For any one wait for a peer.
  int cores = 1;    ///< That the local ranks may use, counted before pinning.
};

/// The strategy `context.options.kind` names: there is one for every row of kinds/strategy_table.h.
/// All workers call it together.
std::unique_ptr<Strategy> make_strategy(const StrategyContext& context);

/// The kinds it can make.
std::vector<std::string> made_strategies();

/// Whether workers push changes of their own parameters to servers, not gradients.
bool pushes_deltas(const StrategyOptions& options);

/// Where workers make their steps alone and come together after the multiples of so many: how many.
std::int64_t steps_alone(const StrategyOptions& options, std::int64_t steps_per_epoch);

}  // namespace cohort::strategy
