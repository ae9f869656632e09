#include "cluster/all_or_none.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

namespace cohort {
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
}  // namespace cohort
