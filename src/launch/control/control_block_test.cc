// A stop after a common step, without asking: by hand, and by threads that race with it.

#include "launch/control/control_block.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace cohort::launch {
namespace {

TEST(CommonStop, IsAfterTheFurthestStepThatSomebodyMakes) {
  ControlBlock control(3, 0);
  const std::vector<int> workers = {0, 1, 2};
  EXPECT_TRUE(control.may_head_for(control.card(0), 5));
  EXPECT_TRUE(control.may_head_for(control.card(1), 9));
  control.request_stop();
  control.set_last_step(control.furthest_step(workers));
  for (std::int64_t step = 6; step <= 9; ++step) {
    EXPECT_TRUE(control.may_head_for(control.card(0), step));
  }
  EXPECT_FALSE(control.may_head_for(control.card(0), 10));
  EXPECT_FALSE(control.may_head_for(control.card(1), 10));
  EXPECT_FALSE(control.may_head_for(control.card(2), 1000)) << "it began the group beyond it";
}

TEST(CommonStop, OfWorkersElsewhereIsNotChosen) {
  ControlBlock control(1, 0);
  control.request_stop();
  control.set_last_step(ControlBlock::kNoCommonStep);
  EXPECT_TRUE(control.may_head_for(control.card(0), 1'000'000));
}

// Threads that go as fast as they can, each at its own pace; the stop comes at any moment.
TEST(CommonStop, IsTheSameForAllWhateverTheTiming) {
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    ControlBlock control(3, 0);
    std::vector<int> workers(3);
    std::iota(workers.begin(), workers.end(), 0);
    std::vector<std::int64_t> done(workers.size());
    std::vector<std::thread> threads;
    for (const int worker : workers) {
      threads.emplace_back([&control, worker, &steps = done[static_cast<std::size_t>(worker)]] {
        while (control.may_head_for(control.card(worker), steps + 1)) ++steps;
      });
    }
    control.request_stop();
    control.set_last_step(control.furthest_step(workers));
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(done, std::vector(workers.size(), done.front())) << "round " << round;
  }
}

}  // namespace
}  // namespace cohort::launch
