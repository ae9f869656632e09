// However pushes come together, each moves the model by its share of a step. Gradients are zero
// here, so that weight decay alone tells how many steps were made.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.h"
#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using Consistency = ShardRules::Consistency;

constexpr int kParts = 4;
constexpr double kDecay = 0.001;  // Of a step.
constexpr float kFirst = 10;

struct Case {
  std::string name;
  Consistency consistency;
  int quorum = 1;
  bool deltas = false;
  std::set<int> lost = {};  ///< Workers that leave before they push anything.
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

ShardRules rules_of(const Case& one) {
  ShardRules rules = rules_of(one.consistency, kParts);
  rules.quorum = one.quorum;
  rules.deltas = one.deltas;
  rules.optimizer = {.kind = "sgd", .lr = 1, .weight_decay = one.deltas ? 0 : kDecay};
  return rules;
}

double steps_moved(const Shard& shard) {
  return std::log(shard.dense()[0] / kFirst) / std::log(1 - kDecay);
}

/// Workers that push whenever they may, in a random order. With deltas each push is what a step of
/// the worker's own has made of what it pulled last.
class Pushing {
 public:
  explicit Pushing(const Case& one) : deltas_(one.deltas), shard_(rules_of(one), {.dense = 1}) {
    initialise(shard_, std::vector<float>{kFirst});
    for (const int worker : one.lost) shard_.leave(worker);
    for (int worker = 0; worker < kParts; ++worker) {
      if (!one.lost.contains(worker)) workers_.push_back({.number = worker});
    }
  }

  const Shard& push(int pushes) {
    while (pushes > 0) {
      Worker& worker = workers_[random_.below(workers_.size())];
      if (worker.call && worker.call->waits()) continue;
      push_by(worker);
      --pushes;
    }
    finish();
    return shard_;
  }

 private:
  struct Worker {
    int number = 0;
    std::uint64_t sequence = 0;
    std::unique_ptr<Call> call = {};
  };

  void push_by(Worker& worker) {
    const bool first = !worker.call;
    const float pulled = first ? kFirst : worker.call->pulled[0];
    const std::uint64_t version = first ? 0 : worker.call->reply->version;
    RequestHeader header = push_and_pull(worker.number, ++worker.sequence, version);
    header.lr = 1;
    const float delta = deltas_ ? -static_cast<float>(kDecay) * pulled : 0;
    worker.call = std::make_unique<Call>(header, std::vector<float>{delta});
    worker.call->submit(shard_);
  }

  /// The last round may be smaller than the quorum.
  void finish() {
    for (const Worker& worker : workers_) {
      if (worker.call && worker.call->waits()) continue;
      Call finished(finished_by(worker.number));
      finished.submit(shard_);
    }
    for (const Worker& worker : workers_) {
      if (worker.call && worker.call->waits()) shard_.leave(worker.number);
    }
  }

  Random random_ = Random(5);
  bool deltas_;
  Shard shard_;
  std::vector<Worker> workers_;
};

class ShardMovement : public ::testing::TestWithParam<Case> {};

TEST_P(ShardMovement, IsThatOfThePushesWhateverTheirNumberInAnUpdate) {
  Pushing pushing(GetParam());
  const Shard& shard = pushing.push(1001);
  const auto applied = static_cast<double>(shard.counts().applied);
  EXPECT_GE(applied, 998) << "who waits at the end leaves with its push";
  EXPECT_NEAR(steps_moved(shard) / (applied / kParts), 1, 0.005);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ShardMovement,
    ::testing::Values(Case{"async", Consistency::async},
                      Case{"one_of_four", Consistency::quorum, 1},
                      Case{"two_of_four", Consistency::quorum, 2},
                      Case{"all_of_four", Consistency::quorum, 4},
                      Case{"three_of_one", Consistency::quorum, 3, false, {0, 1, 3}},
                      Case{"three_of_two", Consistency::quorum, 3, false, {1, 3}},
                      Case{"async_deltas", Consistency::async, 1, true},
                      Case{"deltas_one_of_four", Consistency::quorum, 1, true},
                      Case{"deltas_two_of_four", Consistency::quorum, 2, true},
                      Case{"deltas_three_of_one", Consistency::quorum, 3, true, {0, 1, 2}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cohort::server
