#pragma once

#include <cohort/error.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "kinds/strategy_table.h"
#include "train/loop/training_loop.h"

// A training without gradients, for tests of the loop and its parts. Workers are threads; each has
// a Script that says what goes wrong, an InventedStrategy and an InventedStepper that remember what
// they were asked for, and the real control block, log and checkpoints around them.

namespace cohort::training {

/// What the loop of one worker has asked for, in order: "compute 0", "finish 0", "meet" …
using Calls = std::vector<std::string>;

/// Where the workers of a test, which are threads, add up numbers.
class RoundTable {
 public:
  explicit RoundTable(int world) : all_(world) {}

  void sum(collective::Numbers numbers) {
    numbers.as_span([&](auto own) {
      {
        const std::lock_guard lock(mutex_);
        sums_.resize(own.size());
        for (std::size_t i = 0; i < own.size(); ++i) sums_[i] += static_cast<double>(own[i]);
      }
      all_.arrive_and_wait();
      for (std::size_t i = 0; i < own.size(); ++i) {
        own[i] = static_cast<std::decay_t<decltype(own[i])>>(sums_[i]);
      }
      all_.arrive_and_wait();
      const std::lock_guard lock(mutex_);
      sums_.clear();
    });
    all_.arrive_and_wait();
  }

  /// Who is done or has failed keeps nobody waiting.
  void leave() { all_.arrive_and_drop(); }

 private:
  std::mutex mutex_;
  std::vector<double> sums_;
  std::barrier<> all_;
};

/// What a test says of one worker's training; by default nothing goes wrong. Steps count from 0.
struct Script {
  std::function<void(std::int64_t step)> in_compute = [](std::int64_t) {};
  std::function<void(std::int64_t step)> in_finish = [](std::int64_t) {};
  std::function<void()> in_evaluate = [] {};
  std::function<double(std::int64_t step)> loss = [](std::int64_t) { return 1.0; };
  std::int64_t first_step = 0;
  bool answers_bring_work = true;  ///< Where work is handed out and the loop wants the next piece.
};

/// A strategy without gradients: it counts votes, hands out whole steps in order, and remembers
/// what it was asked for. `stepper` tells the votes, which a real one is told in the backward pass.
class InventedStrategy : public strategy::Strategy, private strategy::WorkSource {
 public:
  struct Place {
    int rank = 0;
    kinds::StrategyTraits traits = {};
    std::int64_t steps = 0;  ///< Of the job.
  };

  InventedStrategy(const Place& place, const Script& script, RoundTable& table, Model& model,
                   Calls& calls)
      : place_(place),
        script_(script),
        table_(table),
        floats_(tensor::ModelLayout::of(model).parameters.size),
        gradients_(floats_.size()),
        space_(model, {.parameters = floats_, .gradients = gradients_, .buffers = {}}),
        calls_(calls),
        done_(script.first_step) {}

  tensor::FlatSpace& space() override { return space_; }
  void begin_last_backward(const strategy::Vote& vote) override {
    vote_ = vote;
    ++votes_;
    space_.begin_last_backward();
  }

  strategy::StepOutcome finish_step(const strategy::UpdatePlan& plan) override {
    script_.in_finish(plan.step);
    calls_.push_back(
        fmt::format("finish {}{}", plan.step, plan.wants_next ? " and wants next" : ""));
    strategy::StepOutcome outcome{.loss = vote_.loss};
    outcome.stop = vote_.stop && place_.traits.hands_out_work;
    if (place_.traits.lockstep) count_votes(outcome);
    if (outcome.diverged_rank >= 0) return outcome;
    done_ = plan.step + 1;
    if (plan.wants_next && script_.answers_bring_work) outcome.next = claim();
    return outcome;
  }

  strategy::WorkSource* work() override { return place_.traits.hands_out_work ? this : nullptr; }
  void meet() override { calls_.push_back("meet"); }
  void sum_over_workers(collective::Numbers numbers) override { table_.sum(numbers); }
  strategy::StrategyReport report() const override { return {"invented", {}}; }
  void close() noexcept override {}

  std::int64_t first_step() const override { return script_.first_step; }
  bool all_carry() const override { return !place_.traits.lockstep; }
  void save_state(tensor::TrainingState& state) override {
    calls_.push_back(fmt::format("save {}", done_));
    state.step = done_;
    state.parameters = floats_;
  }

  const strategy::Vote& vote() const { return vote_; }
  /// How often it was told one.
  int votes() const { return votes_; }

 private:
  void count_votes(strategy::StepOutcome& outcome) {
    std::array<double, 3> votes = {outcome.loss, vote_.stop ? 1.0 : 0.0, 0};
    if (!std::isfinite(outcome.loss)) votes = {0, votes[1], place_.rank + 1.0};
    table_.sum(votes);
    outcome = {.loss = votes[0], .stop = votes[1] > 0};
    if (votes[2] > 0) outcome.diverged_rank = static_cast<int>(votes[2]) - 1;
  }

  std::optional<cluster::Claim> next_work() override {
    calls_.push_back("ask for work");
    return claim();
  }

  std::optional<cluster::Claim> claim() {
    return done_ < place_.steps ? std::optional(cluster::Claim{.step = done_}) : std::nullopt;
  }

  Place place_;
  const Script& script_;
  RoundTable& table_;
  std::vector<float> floats_;
  std::vector<float> gradients_;
  tensor::FlatSpace space_;
  Calls& calls_;
  std::int64_t done_;
  strategy::Vote vote_;
  int votes_ = 0;
};

/// Passes that cost nothing.
class InventedStepper : public Stepper {
 public:
  InventedStepper(const Script& script, strategy::Strategy& strategy, Calls& calls)
      : script_(script), strategy_(strategy), calls_(calls) {}

  StepWork compute(const StepOrder& order) override {
    calls_.push_back(fmt::format("compute {}{}", order.piece.step, order.stop ? " and stop" : ""));
    script_.in_compute(order.piece.step);
    const double loss = script_.loss(order.piece.step);
    strategy_.begin_last_backward({.loss = loss, .stop = order.stop});
    return {.loss = loss, .rows = 2, .global_rows = 4};
  }

  ValidationSums evaluate(ValidationPart part) override {
    calls_.push_back(part == ValidationPart::own_share ? "evaluate share" : "evaluate all");
    script_.in_evaluate();
    return {.loss = 6, .samples = 2, .right = 1, .predictions = 2};
  }

 private:
  const Script& script_;
  strategy::Strategy& strategy_;
  Calls& calls_;
};

/// A run of invented workers: 8 samples in batches of 4, so an epoch has two steps.
class InventedRun {
 public:
  explicit InventedRun(const Job& job) : job_(job), control_(kWorkers, 0) {
    job_.train.batch = 4;
    job_.log.tensorboard = false;
    job_.model.make = [] { return wrap(std::make_shared<torch::nn::LinearImpl>(1, 1)); };
    data_.train = data_.validation =
        std::make_shared<TensorDataset>(torch::zeros({8, 1}), torch::zeros({8, 1}));
    for (int worker = 0; worker < kWorkers; ++worker) {
      control_.card(worker).state.store(launch::TaskState::starting);
      lives_.push_back(std::make_unique<WorkerLife>(run_, worker));
    }
  }

  /// What became of one worker in a group.
  struct Seen {
    Calls calls;
    std::optional<TrainingLoop::End> end = {};
    std::optional<Error> error = {};
    std::int64_t steps = -1;
  };

  /// One group after the other, each with one script per worker.
  std::vector<Seen> train(const std::vector<Script>& scripts) {
    cluster::View view{.generation = ++epoch_};
    for (std::size_t i = 0; i < scripts.size(); ++i) view.workers.push_back(static_cast<int>(i));
    RoundTable table(view.world());
    std::vector<Seen> seen(scripts.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      threads.emplace_back([&, i] { train_worker(view, scripts[i], table, i, seen[i]); });
    }
    threads.clear();
    return seen;
  }

  WorkerLife& life(std::size_t worker) { return *lives_[worker]; }
  launch::ControlBlock& control() { return control_; }
  std::filesystem::path folder() const { return folder_.path(); }

 private:
  static constexpr int kWorkers = 2;

  void train_worker(const cluster::View& view, const Script& script, RoundTable& table,
                    std::size_t worker, Seen& seen) {
    const auto model = job_.model.make();
    InventedStrategy strategy({.rank = static_cast<int>(worker),
                               .traits = kinds::way_of(job_.strategy).traits,
                               .steps = job_.train.steps},
                              script, table, *model, seen.calls);
    InventedStepper stepper(script, strategy, seen.calls);
    try {
      TrainingLoop loop({.life = life(worker),
                         .view = view,
                         .engine = "invented",
                         .model = *model,
                         .strategy = strategy,
                         .stepper = stepper});
      seen.end = loop.run();
      seen.steps = loop.steps_done();
    } catch (const Error& error) {
      seen.error = error;
    }
    table.leave();
  }

  const TemporaryFolder folder_;
  Job job_;
  data::LoadedData data_;
  launch::ControlBlock control_;
  const WorkerRun run_{.job = job_, .data = data_, .control = control_, .run_dir = folder_.path()};
  std::vector<std::unique_ptr<WorkerLife>> lives_;
  std::int64_t epoch_ = 0;
};

}  // namespace cohort::training
