#pragma once

#include <cohort/error.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/failpoint.h"
#include "base/random.h"
#include "cluster/socket_store.h"
#include "cluster/store.h"
#include "kinds/strategy_table.h"
#include "optimizer/optimizer.h"
#include "os/memory.h"
#include "os/peer_watch.h"
#include "strategy/strategy.h"

namespace cohort::strategy {

/// For tests of all-reduce and gossip: workers in processes of their own, which train one model in
/// one group after the other. In the first one a worker may be killed, by a failpoint or from
/// outside, and another one while it carries the state over; what each worker ends with comes back
/// through shared memory. Only for suites whose name ends with DeathTest: they run first, while
/// this process has no threads yet.

inline constexpr std::int64_t kGroupInputs = 310;
inline constexpr std::int64_t kGroupClasses = 5;
inline constexpr std::int64_t kGroupRows = 24;  ///< Of the global batch.
inline constexpr std::int64_t kGroupBuffers = 3;
inline constexpr std::int64_t kGroupParts = 2;  ///< Where work is handed out.

inline torch::Tensor random_floats(std::vector<std::int64_t> shape, std::uint64_t stream) {
  Random numbers(7, stream);
  torch::Tensor values = torch::zeros(shape);
  auto* data = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<float>(numbers.normal());
  return values;
}

/// Large enough that every owner's part has several blocks, with a buffer that every worker changes
/// by the rows it sees.
struct GroupNet : torch::nn::Module {
  GroupNet() {
    first = register_parameter("first", random_floats({kGroupInputs, 256}, 1) * 0.05);
    second = register_parameter("second", random_floats({256, kGroupClasses}, 2) * 0.1);
    seen = register_buffer("seen", torch::zeros({kGroupBuffers}));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    {
      const torch::NoGradGuard no_grad;
      seen.mul_(0.9).add_(0.1 * input.slice(1, 0, kGroupBuffers).mean(0));
    }
    return torch::matmul(torch::tanh(torch::matmul(input, first)), second);
  }

  torch::Tensor first, second, seen;
};

struct GroupJob {
  StrategyOptions strategy = {};
  OptimizerOptions optimizer = {.kind = "sgd", .lr = 0.1};
  std::string engine = "shm";
  double clip_norm = 0;
  std::int64_t steps = 10;
};

/// Workers, by numbers that they keep, that train together until a step is done, or until one of
/// them is lost. Of each group the ranks are in the order written. Where work is handed out, each
/// stops after so many pieces, or with all steps when all is done.
struct Stage {
  std::vector<int> workers;
  std::int64_t until = 0;
};

/// One that dies in the first stage.
struct Victim {
  int worker = -1;
  std::string failpoints = {};           ///< Set there before the first step.
  std::int64_t pieces = 0;               ///< Where work is handed out: in which it dies.
  std::function<void(pid_t)> kill = {};  ///< Called by the test's process once all run.
};

/// What a worker has at the end.
struct WorkerEnd {
  std::vector<float> parameters;
  std::vector<float> buffers;
  std::vector<double> losses;             ///< By step; 0 where it had no part.
  std::vector<std::int64_t> first_steps;  ///< Of its groups.
  bool finished = false;
};

/// One that dies while it takes along what the first stage has learned.
struct Carrier {
  int worker = -1;
  std::string failpoints = {};
};

class WorkerProcesses {
 public:
  static constexpr std::size_t kMostFloats = 1 << 17;
  static constexpr std::size_t kMostSteps = 256;
  static constexpr std::size_t kMostStages = 8;

  WorkerProcesses(GroupJob job, std::vector<Stage> stages, Victim victim = {}, Carrier carrier = {})
      : job_(std::move(job)),
        stages_(std::move(stages)),
        victim_(std::move(victim)),
        carrier_(std::move(carrier)) {
    for (const Stage& stage : stages_) {
      for (const int worker : stage.workers) workers_ = std::max(workers_, worker + 1);
    }
    memory_ = os::SharedMemory::create(static_cast<std::size_t>(workers_) * sizeof(Result));
    pieces_ = os::SharedMemory::create(kMostSteps * kGroupParts * sizeof(std::atomic<int>));
  }

  /// The ends of all workers but the victim, by number.
  std::vector<WorkerEnd> run() {
    std::fflush(nullptr);
    cluster::StoreServer server(cluster::Pass::draw());
    std::vector<pid_t> pids;
    for (int worker = 0; worker < workers_; ++worker) {
      pids.push_back(::fork());
      if (pids.back() == 0) be_worker(worker, server);
    }
    server.start();
    if (victim_.kill) victim_.kill(pids[static_cast<std::size_t>(victim_.worker)]);
    std::vector<WorkerEnd> ends(static_cast<std::size_t>(workers_));
    for (int worker = 0; worker < workers_; ++worker) {
      int status = -1;
      ::waitpid(pids[static_cast<std::size_t>(worker)], &status, 0);
      if (worker == victim_.worker || worker == carrier_.worker) {
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the victim lives";
        continue;
      }
      EXPECT_EQ(status, 0) << "worker " << worker << " failed; its own report is above";
      ends[static_cast<std::size_t>(worker)] = end_of(worker);
    }
    return ends;
  }

  /// Where work is handed out: how often every piece was done.
  std::vector<int> times_done() const {
    const auto* times = reinterpret_cast<const std::atomic<int>*>(pieces_.data());
    return {times, times + job_.steps * kGroupParts};
  }

  /// Steps that a worker has begun so far. Any process may ask.
  std::int64_t steps_begun(int worker) const { return result(worker).begun.load(); }

 private:
  struct Result {
    std::atomic<std::int64_t> begun;
    std::size_t parameters, buffers, stages;
    float values[kMostFloats];
    double losses[kMostSteps];
    std::int64_t first_steps[kMostStages];
    bool finished;
  };

  Result& result(int worker) const { return reinterpret_cast<Result*>(memory_.data())[worker]; }

  WorkerEnd end_of(int worker) const {
    const Result& from = result(worker);
    return {
        .parameters = {from.values, from.values + from.parameters},
        .buffers = {from.values + from.parameters, from.values + from.parameters + from.buffers},
        .losses = {from.losses, from.losses + job_.steps},
        .first_steps = {from.first_steps, from.first_steps + from.stages},
        .finished = from.finished};
  }

  [[noreturn]] void be_worker(int worker, const cluster::StoreServer& server) {
    ::alarm(120);  // One that hangs fails its test instead of stopping all.
    int code = 0;
    try {
      at::set_num_threads(1);
      cluster::SocketStore store(server.endpoint(), server.pass(), Deadline::in_seconds(60),
                                 {.number = worker});
      live(worker, store);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "worker %d: %s\n", worker, error.what());
      code = 1;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }

  void live(int worker, cluster::Store& store) {
    tensor::TrainingState state;
    bool has_state = false;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const auto& workers = stages_[i].workers;
      const auto place = std::ranges::find(workers, worker);
      if (place == workers.end()) continue;
      const int rank = static_cast<int>(place - workers.begin());
      cluster::PrefixStore view(store, fmt::format("e{}/", i), {}, workers);
      const auto engine = transport::make_engine({.name = job_.engine,
                                                  .rank = rank,
                                                  .world = static_cast<int>(workers.size()),
                                                  .address = "127.0.0.1",
                                                  .cores = 2},
                                                 view, Deadline::in_seconds(60));
      if (i == 0 && worker == victim_.worker) set_failpoints(victim_.failpoints);
      const tensor::TrainingState start = state;
      train(i, worker, *engine, view, has_state ? &start : nullptr, state);
      has_state = true;
    }
    result(worker).finished = true;
  }

  void train(std::size_t stage, int worker, transport::Engine& engine, cluster::Store& store,
             const tensor::TrainingState* start, tensor::TrainingState& state) {
    const auto net = std::make_shared<GroupNet>();
    const auto model = wrap(net);
    const auto optimizer = optimizer::make_optimizer(job_.optimizer);
    PhaseClock phases;
    const auto strategy = make_strategy({.model = *model,
                                         .engine = engine,
                                         .store = store,
                                         .optimizer = *optimizer,
                                         .phases = phases,
                                         .options = job_.strategy,
                                         .optimizer_options = job_.optimizer,
                                         .start = start,
                                         .seed = 4,
                                         .steps = job_.steps,
                                         .parts = kGroupParts,
                                         .generation = static_cast<std::int64_t>(stage),
                                         .timeout = std::chrono::seconds(60),
                                         .cores = 2});
    meetings_ = 0;
    Result& own = result(worker);
    own.first_steps[stage] = strategy->first_step();
    own.stages = stage + 1;
    bool lost = false;
    try {
      if (strategy->work() != nullptr) {
        do_pieces(*strategy, *net, stages_[stage].until, own);
      } else {
        for (std::int64_t step = strategy->first_step(); step < stages_[stage].until; ++step) {
          ++own.begun;
          own.losses[step] =
              train_step(*strategy, *net, {step, engine.rank(), engine.world()}).loss;
        }
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost) throw;
      lost = true;
    }
    if (worker == victim_.worker) ::pause();  // Killed a little too late for a step: now.
    const bool between_steps = !lost && kinds::way_of(job_.strategy).traits.lockstep;
    if (between_steps) strategy->save_state(state);
    strategy->close();
    come_together(stage, store);
    if (lost && stage == 0) die_or_wait(worker, *strategy, state, store);
    if (!between_steps && carries(stage, worker, *strategy)) strategy->carry_state(state);
    const auto copied = std::ranges::copy(state.parameters, own.values);
    std::ranges::copy(state.buffers, copied.out);
    own.parameters = state.parameters.size();
    own.buffers = state.buffers.size();
  }

  /// In lockstep it is the first of the next group, and all who have something of their own.
  bool carries(std::size_t stage, int worker, const Strategy& strategy) const {
    if (strategy.all_carry() || stage + 1 == stages_.size()) return true;
    return stages_[stage + 1].workers.front() == worker;
  }

  /// The others begin when the carrier is dead, as in a run, where the launcher sees to that.
  void die_or_wait(int worker, Strategy& strategy, tensor::TrainingState& state,
                   cluster::Store& store) {
    if (worker == carrier_.worker) {
      store.set("carrier", std::to_string(::getpid()));
      set_failpoints(carrier_.failpoints);
      strategy.carry_state(state);
      ::kill(::getpid(), SIGKILL);  // It had less to do.
    } else if (carrier_.worker >= 0) {
      wait_for_end(std::stoi(store.get("carrier", Deadline::in_seconds(60))));
    }
  }

  static void wait_for_end(pid_t pid) {
    try {
      const os::PeerWatch watch({pid});
      while (!watch.is_dead(0)) std::this_thread::yield();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost) throw;  // It was there no more.
    }
  }

  void do_pieces(Strategy& strategy, GroupNet& net, std::int64_t until, Result& own) {
    auto* times = reinterpret_cast<std::atomic<int>*>(pieces_.data());
    for (std::int64_t done = 0; until == job_.steps || done < until; ++done) {
      let_victim_work(own);
      const auto claim = strategy.work()->next_work();
      if (!claim) break;
      ++own.begun;
      own.losses[claim->step] =
          train_step(strategy, net, {claim->step, claim->part, kGroupParts}).loss;
      ++times[claim->step * kGroupParts + claim->part];
    }
    if (until == job_.steps) strategy.meet();
  }

  /// Nobody may do all the work before the victim has come to the piece in which it dies.
  void let_victim_work(const Result& own) const {
    if (victim_.worker < 0 || &own == &result(victim_.worker)) return;
    while (steps_begun(victim_.worker) < std::min<std::int64_t>(own.begun, victim_.pieces)) {
      std::this_thread::yield();
    }
  }

  /// One of so many parts of a step's batch.
  struct Part {
    std::int64_t step = 0;
    std::int64_t number = 0;
    std::int64_t of = 1;
  };

  StepOutcome train_step(Strategy& strategy, GroupNet& net, const Part& part) {
    const torch::Tensor inputs =
        random_floats({kGroupRows, kGroupInputs}, 100 + static_cast<std::uint64_t>(part.step));
    const auto mine = [&](const torch::Tensor& all) {
      return all.slice(0, kGroupRows * part.number / part.of,
                       kGroupRows * (part.number + 1) / part.of);
    };
    strategy.space().begin_step();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(
            net.forward(mine(inputs)), mine(inputs.slice(1, 0, kGroupClasses).argmax(1)),
            torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum)) /
        static_cast<double>(kGroupRows);
    strategy.begin_last_backward({.loss = loss.item<double>()});
    loss.backward();
    return strategy.finish_step(
        {.lr = job_.optimizer.lr, .step = part.step, .clip_norm = job_.clip_norm});
  }

  /// Returns when all of the stage that live have called it as often as this one.
  void come_together(std::size_t stage, cluster::Store& store) {
    const auto& workers = stages_[stage].workers;
    const auto dead = std::ranges::count(workers, victim_.worker);
    const std::string key = fmt::format("test/{}", meetings_++);
    if (store.add(key, 1) == static_cast<std::int64_t>(workers.size()) - dead) {
      store.set(key + "/all", "yes");
    }
    store.get(key + "/all", Deadline::in_seconds(60));
  }

  GroupJob job_;
  std::vector<Stage> stages_;
  Victim victim_;
  Carrier carrier_;
  int workers_ = 0;
  os::SharedMemory memory_;
  os::SharedMemory pieces_;
  int meetings_ = 0;
};

}  // namespace cohort::strategy
