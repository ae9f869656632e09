// Workers and servers as processes that are killed: at every point of a server's update, and
// between a worker's steps. Suites whose name ends with DeathTest run before others have threads.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <functional>
#include <map>
#include <numeric>

#include "base/fail.h"
#include "base/failpoint.h"
#include "cluster/socket_store.h"
#include "cluster/store.h"
#include "kinds/strategy_table.h"
#include "os/memory.h"
#include "strategy/servers/server_groups_test_support.h"

namespace cohort::strategy {
namespace {

constexpr std::size_t kMostFloats = 1 << 14;
constexpr std::int64_t kSteps = 12;

/// What the chief of the last group has saved, where this process can see it.
struct SavedFloats {
  std::atomic<bool> complete;
  std::int64_t first_step;  ///< Of the last group.
  std::int64_t step;
  std::size_t count;
  float floats[kMostFloats];  ///< Parameters, slots, buffers.
};

struct Outcome {
  std::int64_t first_step = 0;
  std::int64_t step = 0;
  std::vector<float> floats = {};
};

struct Killing {
  int server = -1;
  std::string failpoint = {};  ///< Of that server.
  int worker = -1;
  std::int64_t after = 0;  ///< Steps of that worker.
};

/// A group that is broken by a killed process, and one of those who are left that goes on with new
/// servers.
class BrokenRun {
 public:
  BrokenRun(const Job& job, int workers, const Killing& killing)
      : job_(job),
        workers_(workers),
        killing_(killing),
        house_(job),
        memory_(os::SharedMemory::create(sizeof(SavedFloats))) {}

  Outcome run() {
    std::fflush(nullptr);
    cluster::StoreServer store(cluster::Pass::draw());
    const bool breaks = killing_.server >= 0 || killing_.worker >= 0;
    std::array<int, 2> go = {-1, -1};
    EXPECT_EQ(::pipe(go.data()), 0);
    std::vector<pid_t> first, second, workers;
    for (int server = 0; server < job_.cluster.servers; ++server) {
      first.push_back(fork_to([&] { serve(server, 1, store); }));
      if (!breaks) continue;
      second.push_back(fork_to([&] {
        char one = 0;
        if (::read(go[0], &one, 1) == 1) serve(server, 2, store);
      }));
    }
    for (int worker = 0; worker < workers_; ++worker) {
      workers.push_back(fork_to([&] { work(worker, breaks, store); }));
    }
    store.start();
    if (killing_.server >= 0) end_servers(first);
    for (std::size_t server = 0; server < first.size(); ++server) {
      if (killing_.server < 0) {
        wait_for(first[server], true);
      } else if (static_cast<int>(server) == killing_.server) {
        wait_for(first[server], false);
      } else {
        ::waitpid(first[server], nullptr, 0);  // It may have ended with its workers before.
      }
    }
    house_.reconcile();
    // Now the second servers may start.
    for (std::size_t i = 0; i < second.size(); ++i) EXPECT_EQ(::write(go[1], "!", 1), 1);
    for (const pid_t server : second) wait_for(server, true);
    for (int worker = 0; worker < workers_; ++worker) {
      wait_for(workers[static_cast<std::size_t>(worker)], worker != killing_.worker);
    }
    for (const int end : go) ::close(end);
    const SavedFloats& saved = *reinterpret_cast<const SavedFloats*>(memory_.data());
    EXPECT_TRUE(saved.complete.load());
    return {saved.first_step, saved.step, {saved.floats, saved.floats + saved.count}};
  }

 private:
  static pid_t fork_to(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::alarm(120);  // One that hangs fails its test instead of stopping all.
    int code = 0;
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "process %d: %s\n", ::getpid(), error.what());
      code = 1;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }

  static void wait_for(pid_t pid, bool ends_well) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, ends_well ? 0 : SIGKILL);
  }

  /// As a launcher does when one of them was killed.
  void end_servers(const std::vector<pid_t>& servers) {
    siginfo_t ended{};
    const auto victim = static_cast<id_t>(servers[static_cast<std::size_t>(killing_.server)]);
    ::waitid(P_PID, victim, &ended, WEXITED | WNOWAIT);
    for (const pid_t server : servers) ::kill(server, SIGKILL);
  }

  GroupRun group(std::int64_t generation) const {
    // Where work is handed out, all of it.
    const std::int64_t until =
        kinds::way_of(job_.strategy).traits.hands_out_work ? 1 << 20 : kSteps;
    GroupRun run{.job = job_, .workers = workers_, .generation = generation, .until = until};
    if (generation == 2 && killing_.worker >= 0) --run.workers;
    if (generation == 2) return run;
    run.may_break = true;
    run.dying = killing_.worker;
    run.dies_after = killing_.after;
    run.kills = true;
    return run;
  }

  void serve(int server, std::int64_t generation, const cluster::StoreServer& meeting) {
    if (generation == 1 && server == killing_.server) set_failpoints(killing_.failpoint);
    cluster::SocketStore store(meeting.endpoint(), meeting.pass(), Deadline::in_seconds(60),
                               {cluster::Member::Role::server, server});
    cluster::PrefixStore view(store, fmt::format("e{}/", generation), {}, members(generation));
    server::run_server(house_.options(server, group(generation)), view);
  }

  void work(int worker, bool breaks, const cluster::StoreServer& meeting) {
    at::set_num_threads(1);
    cluster::SocketStore store(meeting.endpoint(), meeting.pass(), Deadline::in_seconds(60),
                               {.number = worker});
    GroupEnd end = train(1, worker, nullptr, store);
    if (breaks) {
      if (!end.lost_a_peer) fail(ErrorCode::invalid, "worker {} has lost nobody", worker);
      const int rank = killing_.worker >= 0 && worker > killing_.worker ? worker - 1 : worker;
      const tensor::TrainingState start = end.carried;
      end = train(2, rank, &start, store);
      worker = rank;
    }
    if (worker == 0) tell(end);
  }

  /// The workers of a group, by their ranks there.
  std::vector<int> members(std::int64_t generation) const {
    std::vector<int> workers(static_cast<std::size_t>(group(1).workers));
    std::iota(workers.begin(), workers.end(), 0);
    if (generation == 2) std::erase(workers, killing_.worker);
    return workers;
  }

  GroupEnd train(std::int64_t generation, int rank, const tensor::TrainingState* start,
                 cluster::Store& store) {
    GroupRun run = group(generation);
    cluster::PrefixStore view(store, fmt::format("e{}/", generation), {}, members(generation));
    run.starts.assign(static_cast<std::size_t>(run.workers), start);  // It looks at its own only.
    const auto engine = transport::make_engine(
        {.name = "shm", .rank = rank, .world = run.workers, .address = "127.0.0.1", .cores = 2},
        view, Deadline::in_seconds(60));
    return GroupWorker(run, *engine, view).train();
  }

  void tell(const GroupEnd& end) {
    auto& told = *reinterpret_cast<SavedFloats*>(memory_.data());
    std::vector<float> floats = end.saved.parameters;
    for (const auto& slot : end.saved.slots) floats.insert(floats.end(), slot.begin(), slot.end());
    floats.insert(floats.end(), end.saved.buffers.begin(), end.saved.buffers.end());
    if (floats.size() > kMostFloats) fail(ErrorCode::no_space, "the test's net is too large");
    std::ranges::copy(floats, told.floats);
    told.count = floats.size();
    told.first_step = end.first_step;
    told.step = end.saved.step;
    told.complete = true;
  }

  Job job_;
  int workers_;
  Killing killing_;
  ServerHouse house_;
  os::SharedMemory memory_;
};

Job job_in_step(bool averages, int workers) {
  StrategyOptions strategy;
  strategy.kind = averages ? "averaging" : "parameter-server";
  strategy.every = 2;
  Job job = word_job(strategy, workers, 2);
  job.train.optimizer = {.kind = "adam", .lr = 1e-2};
  return job;
}

// Whether the update was made before the server died or not: no step is lost or made twice.
TEST(ServerProcessDeathTest, AKilledServerChangesNothing) {
  for (const bool averages : {false, true}) {
    const Job job = job_in_step(averages, 2);
    const Outcome quiet = BrokenRun(job, 2, Killing()).run();
    EXPECT_EQ(quiet.step, kSteps);
    for (const char* point : {"before-update", "in-update", "before-commit", "before-answer"}) {
      for (const int server : {0, 1}) {
        SCOPED_TRACE(fmt::format("server {} killed {}", server, point));
        // It is passed several times in an update.
        const int passing = std::string_view(point) == "in-update" ? 9 : 3;
        const std::string failpoint = fmt::format("server.{}=kill@{}", point, passing);
        const Outcome broken = BrokenRun(job, 2, {.server = server, .failpoint = failpoint}).run();
        EXPECT_GE(broken.first_step, 1);
        EXPECT_EQ(broken.step, kSteps);
        EXPECT_EQ(broken.floats, quiet.floats);
      }
    }
  }
}

std::map<std::string, StrategyOptions> loose_ways() {
  StrategyOptions async;
  async.kind = "parameter-server";
  async.consistency = "async";
  StrategyOptions quorum = async;
  quorum.consistency = "k-of-n";
  quorum.quorum = 1;
  StrategyOptions deltas = async;
  deltas.push = "delta";
  deltas.local_steps = 3;
  StrategyOptions halves = async;
  halves.compression.kind = "fp16";
  halves.compression.error_feedback = false;
  return {{"async", async}, {"k-of-n", quorum}, {"deltas", deltas}, {"fp16", halves}};
}

// One worker alone makes its steps in order, also where work is handed out to whoever is free. So
// the run with the killed server must end with the same bits: each push is on both servers once,
// and the momentum, which this worker keeps, has the gradient of each once.
TEST(ServerProcessDeathTest, AKilledServerChangesNothingForOneWhoIsHandedItsWork) {
  for (const auto& [name, strategy] : loose_ways()) {
    Job job = word_job(strategy, 1, 2);
    job.train.steps = kSteps;
    job.train.optimizer = {.kind = "sgd", .lr = 0.05, .momentum = 0.9};
    const Outcome quiet = BrokenRun(job, 1, Killing()).run();
    EXPECT_EQ(quiet.step, kSteps);
    for (const auto& [server, point] :
         {std::pair(0, "before-update"), std::pair(1, "before-update"),
          std::pair(0, "before-answer"), std::pair(1, "before-commit")}) {
      SCOPED_TRACE(fmt::format("{}: server {} killed {}", name, server, point));
      // Server 0 comes by a commit with every piece of work, too.
      const std::string failpoint = fmt::format("server.{}=kill@3", point);
      const Outcome broken = BrokenRun(job, 1, {.server = server, .failpoint = failpoint}).run();
      EXPECT_EQ(broken.step, kSteps);
      ASSERT_EQ(broken.floats.size(), quiet.floats.size());
      // A change that was not due yet is pushed all the same, and a new server's first answer is
      // not compressed: both round differently.
      const bool exact = name == "async" || name == "k-of-n";
      const double nearly = exact ? 0 : 1e-4;
      for (std::size_t i = 0; i < quiet.floats.size(); ++i) {
        ASSERT_NEAR(broken.floats[i], quiet.floats[i], nearly) << i;
      }
    }
  }
}

TEST(ServerProcessDeathTest, AKilledWorkersStepIsMadeByTheOthers) {
  Job job = job_in_step(false, 1);
  const Outcome quiet = BrokenRun(job, 1, Killing()).run();
  for (const int worker : {0, 1}) {
    const Outcome broken = BrokenRun(job, 3, {.worker = worker, .after = 5}).run();
    EXPECT_EQ(broken.first_step, 5);
    ASSERT_EQ(broken.floats.size(), quiet.floats.size());
    for (std::size_t i = 0; i < quiet.floats.size(); ++i) {
      ASSERT_NEAR(broken.floats[i], quiet.floats[i], 1e-4) << i;
    }
  }
}

}  // namespace
}  // namespace cohort::strategy
