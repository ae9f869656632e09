// Random trainings with messages in random order: every mode of Shard does what PlainServer does,
// which follows the same rules in double and one number at a time.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/random.h"
#include "cluster/work_board.h"
#include "server/shard/plain_server_test_support.h"
#include "server/shard/shard_test_support.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

using Consistency = ShardRules::Consistency;

// One server then has three pieces of dense floats, and three have one each.
// Sanitizers take their time for every float.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kDense = 5000;
#else
constexpr std::size_t kDense = 40000;
#endif
constexpr std::uint32_t kRows = 50;
constexpr std::uint32_t kWidth = 3;
constexpr int kSteps = 6;

struct Mode {
  std::string name;
  ShardRules rules;
  std::optional<std::int64_t> bound = {};
};

void PrintTo(const Mode& mode, std::ostream* out) {
  *out << mode.name;
}

ShardRules with(Consistency consistency, ShardRules::Weight weight, bool deltas) {
  ShardRules rules;
  rules.consistency = consistency;
  rules.weight = weight;
  rules.deltas = deltas;
  rules.optimizer = {.lr = deltas ? 0.7 : 123, .momentum = 0.5};
  return rules;
}

std::vector<Mode> modes() {
  using Weight = ShardRules::Weight;
  ShardRules dropping = with(Consistency::quorum, Weight::none, false);
  dropping.drop_late = true;
  return {
      {.name = "sync", .rules = with(Consistency::sync, Weight::none, false)},
      {.name = "sync_deltas", .rules = with(Consistency::sync, Weight::none, true)},
      {.name = "async", .rules = with(Consistency::async, Weight::none, false)},
      {.name = "async_inverse", .rules = with(Consistency::async, Weight::inverse, false)},
      {.name = "async_power_deltas", .rules = with(Consistency::async, Weight::power, true)},
      {.name = "bounded", .rules = with(Consistency::async, Weight::power, false), .bound = 1},
      {.name = "quorum", .rules = with(Consistency::quorum, Weight::none, false)},
      {.name = "quorum_power", .rules = with(Consistency::quorum, Weight::power, false)},
      {.name = "quorum_inverse_deltas", .rules = with(Consistency::quorum, Weight::inverse, true)},
      {.name = "quorum_drop", .rules = dropping},
  };
}

/// A shard and its plain twin.
struct Server {
  Server(const ShardRules& rules, ShardPart dense_, ShardPart rows_, Random& random)
      : dense(dense_),
        rows(rows_),
        first_model(random_floats(dense.end - dense.begin, random)),
        first_rows(random_floats((rows.end - rows.begin) * kWidth, random)),
        shard(rules, shape()),
        plain(rules, all_numbers()) {
    initialise(shard, first_model, {first_rows});
  }

  ShardShape shape() const {
    return {.dense = dense.end - dense.begin,
            .tables = {{.first_row = static_cast<std::uint32_t>(rows.begin),
                        .end_row = static_cast<std::uint32_t>(rows.end),
                        .width = kWidth}}};
  }

  std::vector<double> all_numbers() const {
    std::vector<double> all(first_model.begin(), first_model.end());
    all.insert(all.end(), first_rows.begin(), first_rows.end());
    return all;
  }

  ShardPart dense;
  ShardPart rows;
  std::vector<float> first_model;
  std::vector<float> first_rows;
  Shard shard;
  PlainServer plain;
  std::vector<const Call*> waiting = {};  ///< For an answer of this server.
};

/// Workers that push, wait for all servers' answers, and push again; every message of theirs
/// arrives in some random order.
class Simulation {
 public:
  Simulation(const Mode& mode, int workers, int servers)
      : random_(static_cast<std::uint64_t>(workers * 10 + servers)),
        bounded_(mode.bound.has_value()),
        board_({.workers = workers, .end_step = kSteps * workers, .bound = mode.bound}),
        workers_(static_cast<std::size_t>(workers)) {
    ShardRules rules = mode.rules;
    rules.workers = workers;
    rules.parts = workers + 1;  // One was lost.
    rules.quorum = std::max(1, workers / 2);
    for (int server = 0; server < servers; ++server) {
      servers_.push_back(std::make_unique<Server>(rules, dense_part(kDense, servers, server),
                                                  rows_part(kRows, servers, server), random_));
    }
  }

  void run() {
    for (start_free_workers(); !all_done(); start_free_workers()) {
      ASSERT_FALSE(undelivered_.empty()) << "everybody waits";
      const std::size_t next = random_.below(undelivered_.size());
      const auto [worker, server] = undelivered_[next];
      undelivered_.erase(undelivered_.begin() + static_cast<std::ptrdiff_t>(next));
      deliver(worker, server);
    }
    for (const auto& server : servers_) compare_with_twin(*server);
  }

  std::uint64_t late() const { return late_; }
  std::uint64_t pushes() const { return pushes_; }
  const std::vector<std::unique_ptr<Server>>& servers() const { return servers_; }

 private:
  struct Worker {
    std::uint64_t steps = 0;
    bool done = false;
    std::vector<std::unique_ptr<Call>> calls = {};  ///< One per server, of its current step.
  };

  bool all_done() const {
    return std::ranges::all_of(workers_, [](const Worker& worker) { return worker.done; });
  }

  static bool is_free(const Worker& worker) {
    return std::ranges::all_of(worker.calls,
                               [](const auto& call) { return call->reply || call->error; });
  }

  void start_free_workers() {
    for (std::size_t number = 0; number < workers_.size(); ++number) {
      Worker& worker = workers_[number];
      if (!worker.done && undelivered_to(number) == 0 && is_free(worker)) start(number);
    }
    // At the end of the work the last one to ask ends the others' waiting.
    for (std::size_t number = 0; number < workers_.size() && is_any_done(); ++number) {
      Worker& worker = workers_[number];
      if (!worker.done && undelivered_to(number) == 0 && is_free(worker)) start(number);
    }
  }

  bool is_any_done() const {
    return std::ranges::any_of(workers_, [](const Worker& worker) { return worker.done; });
  }

  std::size_t undelivered_to(std::size_t number) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(undelivered_, [&](const auto& one) { return one.first == number; }));
  }

  void start(std::size_t number) {
    Worker& worker = workers_[number];
    if (bounded_) {
      cluster::Claim claim;
      const auto answer = board_.claim(static_cast<int>(number), claim);
      if (answer == cluster::WorkBoard::Answer::wait) return;
      worker.done = answer == cluster::WorkBoard::Answer::end;
    } else {
      worker.done = worker.steps == kSteps;
    }
    if (worker.done) return;
    ++worker.steps;
    std::vector<std::unique_ptr<Call>> calls;
    for (std::size_t server = 0; server < servers_.size(); ++server) {
      calls.push_back(make_call(number, server));
      undelivered_.emplace_back(number, server);
    }
    worker.calls = std::move(calls);
  }

  /// A gradient that depends on what the worker pulled last, so that a wrong pull is not forgotten.
  std::unique_ptr<Call> make_call(std::size_t number, std::size_t server) {
    const Worker& worker = workers_[number];
    Server& to = *servers_[server];
    const bool first = worker.calls.empty();
    const ShardPart rows = to.rows;
    RequestHeader header = push_and_pull(static_cast<int>(number), worker.steps,
                                         first ? 0 : worker.calls[server]->reply->version);
    header.lr = 0.1 + 0.01 * static_cast<double>(random_.below(5));
    header.finished = !bounded_ && worker.steps == kSteps;
    auto call = std::make_unique<Call>(header);
    call->dense = random_floats(to.first_model.size(), random_);
    for (std::size_t i = 0; i < call->dense.size() && !first; ++i) {
      call->dense[i] += 0.1f * worker.calls[server]->pulled[i];
    }
    call->rows = {random_rows(rows)};
    call->rows.front().values = random_floats(call->rows.front().rows.size() * kWidth, random_);
    call->wanted = {random_rows(rows)};
    call->wanted.front().values.resize(call->wanted.front().rows.size() * kWidth);
    return call;
  }

  OwnRows random_rows(ShardPart part) {
    OwnRows rows;
    for (std::size_t row = part.begin; row < part.end; ++row) {
      if (random_.below(3) == 0) rows.rows.push_back(static_cast<std::uint32_t>(row));
    }
    return rows;
  }

  void deliver(std::size_t number, std::size_t server) {
    Server& to = *servers_[server];
    Call& call = *workers_[number].calls[server];
    const std::uint64_t version = to.plain.version();
    const std::vector<double> before = to.plain.parameters();
    const PlainServer::Fate fate = to.plain.push(plain_push(call, to));
    call.submit(to.shard);
    ++pushes_;
    check_rows(call, to, before);
    ASSERT_EQ(to.shard.version(), to.plain.version());
    ASSERT_EQ(call.waits(), fate == PlainServer::Fate::waits);
    if (fate == PlainServer::Fate::kept || fate == PlainServer::Fate::dropped) {
      ++late_;
      EXPECT_EQ(call.reply->dropped, fate == PlainServer::Fate::dropped);
      check_answer(call, version, before);
    } else {
      to.waiting.push_back(&call);
    }
    check_answers(to, version);
  }

  /// Whoever waited and has an answer now has what the twin has at this moment.
  static void check_answers(Server& server, std::uint64_t version_before) {
    for (const Call* call : server.waiting) {
      ASSERT_FALSE(call->error) << call->error->what();
      if (call->waits()) continue;
      EXPECT_EQ(call->reply->version, version_before + 1);
      check_answer(*call, version_before, server.plain.parameters());
    }
    std::erase_if(server.waiting, [](const Call* call) { return !call->waits(); });
  }

  static void check_answer(const Call& call, std::uint64_t version_before,
                           const std::vector<double>& parameters) {
    EXPECT_EQ(call.reply->applied, !call.reply->dropped);
    EXPECT_EQ(call.reply->staleness, version_before - call.header.version);
    expect_near(call.pulled, parameters);
  }

  PlainPush plain_push(const Call& call, const Server& to) const {
    PlainPush push{.worker = call.header.worker,
                   .version = call.header.version,
                   .lr = call.header.lr,
                   .finished = call.header.finished};
    push.values.resize(to.plain.parameters().size());
    std::ranges::copy(call.dense, push.values.begin());
    const OwnRows& rows = call.rows.front();
    for (std::size_t i = 0; i < rows.values.size(); ++i) {
      const std::size_t row = rows.rows[i / kWidth] - to.rows.begin;
      push.values[call.dense.size() + row * kWidth + i % kWidth] = rows.values[i];
    }
    return push;
  }

  /// Rows are those of before the push.
  void check_rows(const Call& call, const Server& to, const std::vector<double>& numbers) const {
    const OwnRows& rows = call.wanted.front();
    for (std::size_t i = 0; i < rows.values.size(); ++i) {
      const std::size_t row = rows.rows[i / kWidth] - to.rows.begin;
      ASSERT_NEAR(rows.values[i], numbers[call.dense.size() + row * kWidth + i % kWidth], 1e-5);
    }
  }

  void compare_with_twin(Server& server) {
    expect_near(std::vector<float>(server.shard.dense().begin(), server.shard.dense().end()),
                server.plain.parameters());
    Call all(pull_by(0));
    OwnRows rows;
    for (std::size_t row = server.rows.begin; row < server.rows.end; ++row) {
      rows.rows.push_back(static_cast<std::uint32_t>(row));
    }
    rows.values.resize(rows.rows.size() * kWidth);
    all.wanted = {rows};
    all.submit(server.shard);
    const std::vector<double> numbers = server.plain.parameters();
    expect_near(
        all.wanted.front().values,
        {numbers.begin() + static_cast<std::ptrdiff_t>(server.first_model.size()), numbers.end()});
  }

  /// The first numbers.size() of `expected`.
  static void expect_near(const std::vector<float>& numbers, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_NEAR(numbers[i], expected[i], 1e-5) << "number " << i;
    }
  }

  Random random_;
  bool bounded_;
  cluster::WorkBoard board_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::pair<std::size_t, std::size_t>> undelivered_;  // (worker, server)
  std::uint64_t late_ = 0;                                        // Kept or dropped.
  std::uint64_t pushes_ = 0;
};

class ShardReference : public ::testing::TestWithParam<Mode> {};

TEST_P(ShardReference, IsWhatAPlainServerDoes) {
  for (const int workers : {1, 2, 4}) {
    for (const int servers : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(servers) + " servers");
      Simulation simulation(GetParam(), workers, servers);
      simulation.run();
      std::uint64_t applied = 0;
      std::uint64_t dropped = 0;
      for (const auto& server : simulation.servers()) {
        const cluster::PushCounts& counts = server->shard.counts();
        applied += counts.applied;
        dropped += counts.dropped;
        EXPECT_EQ(counts.missing + counts.duplicates, 0u);
      }
      EXPECT_EQ(simulation.pushes(), static_cast<std::uint64_t>(workers * servers * kSteps));
      EXPECT_EQ(applied + dropped, simulation.pushes());
      EXPECT_EQ(dropped, GetParam().rules.drop_late ? simulation.late() : 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ShardReference, ::testing::ValuesIn(modes()),
                         [](const auto& mode) { return mode.param.name; });

}  // namespace
}  // namespace cohort::server
