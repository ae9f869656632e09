// Several servers, and workers that need the answers of all of them: random orders of arrival,
// losses and endings must never leave everybody waiting.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/random.h"
#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

/// A worker goes on when all servers have answered it, so what one server waits for may hang on
/// another. Whatever the order of arrival, and whoever finishes or is lost, nobody may wait for
/// ever. A refused worker gives up.
class Cluster {
 public:
  Cluster(const ShardRules& rules, int servers, Random& random)
      : random_(random), workers_(static_cast<std::size_t>(rules.workers)) {
    for (int server = 0; server < servers; ++server) {
      shards_.push_back(std::make_unique<Shard>(rules, ShardShape{.dense = 1}));
      initialise(*shards_.back(), std::vector<float>{0}, {});
    }
    for (Worker& worker : workers_) worker.steps = 1 + random.below(8);
  }

  /// Returns whether all came to their end.
  bool run() {
    while (true) {
      for (std::size_t number = 0; number < workers_.size(); ++number) start_if_free(number);
      if (std::ranges::all_of(workers_, [](const Worker& worker) { return worker.gone; }))
        return true;
      if (on_the_way_.empty()) return false;
      if (random_.below(50) == 0) leave(random_.below(workers_.size()));
      deliver_one();
    }
  }

  /// Every push that arrived was applied or dropped.
  bool all_accounted_for() const {
    return std::ranges::all_of(shards_, [&](const auto& shard) {
      return shard->counts().applied + shard->counts().dropped == arrived(*shard);
    });
  }

 private:
  struct Worker {
    std::uint64_t steps = 0;
    std::uint64_t step = 0;
    bool gone = false;
    std::vector<std::unique_ptr<Call>> calls = {};
  };
  struct Message {
    std::size_t worker;
    std::size_t server;
  };

  void start_if_free(std::size_t number) {
    Worker& worker = workers_[number];
    if (worker.gone) return;
    for (const Message& message : on_the_way_) {
      if (message.worker == number) return;
    }
    for (const auto& call : worker.calls) {
      if (call->waits()) return;
    }
    const bool refused =
        std::ranges::any_of(worker.calls, [](const auto& call) { return call->error.has_value(); });
    worker.gone = refused || worker.step == worker.steps;
    if (worker.gone) return;
    ++worker.step;
    auto last = std::exchange(worker.calls, {});
    for (std::size_t server = 0; server < shards_.size(); ++server) {
      RequestHeader header = push_and_pull(static_cast<int>(number), worker.step,
                                           last.empty() ? 0 : last[server]->reply->version);
      header.finished = worker.step == worker.steps;
      worker.calls.push_back(std::make_unique<Call>(header, std::vector<float>{1}));
      on_the_way_.push_back({number, server});
    }
  }

  void deliver_one() {
    if (on_the_way_.empty()) return;
    const auto next =
        on_the_way_.begin() + static_cast<std::ptrdiff_t>(random_.below(on_the_way_.size()));
    const Message message = *next;
    on_the_way_.erase(next);
    Call& call = *workers_[message.worker].calls[message.server];
    call.submit(*shards_[message.server]);
    if (!call.error) ++arrivals_[shards_[message.server].get()];
  }

  void leave(std::size_t number) {
    if (workers_[number].gone) return;
    std::erase_if(on_the_way_, [&](const Message& message) { return message.worker == number; });
    for (const auto& shard : shards_) shard->leave(static_cast<int>(number));
    workers_[number].gone = true;
  }

  std::uint64_t arrived(const Shard& shard) const {
    const auto found = arrivals_.find(&shard);
    return found == arrivals_.end() ? 0 : found->second;
  }

  Random& random_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Worker> workers_;
  std::vector<Message> on_the_way_;
  std::map<const Shard*, std::uint64_t> arrivals_;
};

TEST(ShardLiveness, NobodyWaitsForEver) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    ShardRules rules;
    rules.consistency = static_cast<ShardRules::Consistency>(random.below(3));
    rules.workers = 1 + static_cast<int>(random.below(6));
    rules.quorum = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(rules.workers)));
    rules.drop_late = random.below(2) == 0;
    const int servers = 1 + static_cast<int>(random.below(5));
    Cluster cluster(rules, servers, random);
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": " << rules.workers << " workers, quorum "
                               << rules.quorum << ", " << servers << " servers";
    EXPECT_TRUE(cluster.all_accounted_for()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cohort::server
