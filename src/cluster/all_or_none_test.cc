// Proves that all who get an answer get the same one, in every order of arriving and asking, and
// over a store that answers too late.

#include "cluster/all_or_none.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

namespace cohort::cluster {
namespace {

TEST(AllOrNone, SaysAllOnceTheLastHasArrived) {
  MemoryStore store;
  AllOrNone decision(store, "mean", 3);
  for (int i = 0; i < 3; ++i) decision.arrive();
  EXPECT_TRUE(decision.all_arrived());
  EXPECT_TRUE(decision.all_arrived());
}

TEST(AllOrNone, SaysNoneForGoodOnceOneHasAskedBefore) {
  MemoryStore store;
  AllOrNone decision(store, "mean", 2);
  decision.arrive();
  EXPECT_FALSE(decision.all_arrived());
  decision.arrive();  // Too late.
  EXPECT_FALSE(decision.all_arrived());
}

TEST(AllOrNone, KeepsDecisionsApart) {
  MemoryStore store;
  AllOrNone first(store, "mean/0", 1);
  AllOrNone second(store, "mean/1", 1);
  first.arrive();
  EXPECT_FALSE(second.all_arrived());
  EXPECT_TRUE(first.all_arrived());
}

/// Answers too late every other time, though it has done what it was asked to.
class SlowStore : public PrefixStore {
 public:
  explicit SlowStore(Store& store) : PrefixStore(store, "") {}
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return in_time(PrefixStore::add(key, amount));
  }
  std::string set_once(const std::string& key, const std::string& value) override {
    return in_time(PrefixStore::set_once(key, value));
  }

 private:
  template <class T>
  T in_time(T answer) {
    if (calls_++ % 2 == 0) throw Error(ErrorCode::timeout, "too late");
    return answer;
  }

  int calls_ = 0;
};

TEST(AllOrNone, AsksAStoreThatIsSlowAgain) {
  MemoryStore store;
  SlowStore slow(store);
  AllOrNone late(slow, "mean", 2), other(store, "mean", 2);
  late.arrive();  // It counts, but nobody has said so.
  other.arrive();
  EXPECT_TRUE(late.all_arrived());
  AllOrNone alone(slow, "another", 2), asks(store, "another", 2);
  alone.arrive();
  EXPECT_FALSE(alone.all_arrived());
  EXPECT_FALSE(asks.all_arrived());
}

// The last one arrives while the others believe that it is lost.
TEST(AllOrNone, TellsAllTheSameWhateverTheRace) {
  constexpr int kMembers = 4;
  int all = 0;
  for (int round = 0; round < 200; ++round) {
    MemoryStore store;
    std::barrier start(kMembers);
    std::vector<int> answers(kMembers);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kMembers; ++i) {
        threads.emplace_back([&, i] {
          AllOrNone decision(store, "mean", kMembers);
          start.arrive_and_wait();
          decision.arrive();
          answers[static_cast<std::size_t>(i)] = decision.all_arrived() ? 1 : 0;
        });
      }
    }
    EXPECT_EQ(std::ranges::count(answers, answers.front()), kMembers);
    all += answers.front();
  }
  RecordProperty("rounds_in_which_all_had_arrived", all);
}

}  // namespace
}  // namespace cohort::cluster
