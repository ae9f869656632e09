// Groups in shared memory: read whole, also by readers that race with the writer.

#include "launch/control/view_register.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostWorkers = 64;

class ViewRegisterTest : public testing::Test {
 protected:
  alignas(64) std::array<std::byte, 1024> memory_{};
  ViewRegister views_{memory_.data()};
};

TEST_F(ViewRegisterTest, HasNoGroupAtFirst) {
  ASSERT_LE(ViewRegister::bytes_needed(kMostWorkers), memory_.size());
  EXPECT_EQ(views_.read(), cluster::View());
  EXPECT_EQ(views_.wait_for(1, Deadline::in(1ms)), std::nullopt);
}

TEST_F(ViewRegisterTest, GivesTheNewestGroup) {
  const cluster::View first{.generation = 1, .workers = {3, 0, 7}};
  const cluster::View second{.generation = 2, .workers = {7}, .closing = true};
  views_.write(first);
  EXPECT_EQ(views_.wait_for(1, Deadline::in(1ms)), first);
  views_.write(second);
  EXPECT_EQ(views_.wait_for(1, Deadline::in(1ms)), second)
      << "who is not in the first needs it not";
  EXPECT_EQ(views_.wait_for(3, Deadline::in(1ms)), std::nullopt);
}

// Every group written is told by its own numbers, so a mixture of two would show.
TEST_F(ViewRegisterTest, IsNeverAMixtureOfTwoGroups) {
  constexpr std::int64_t kGroups = 20'000;
  const auto group = [](std::int64_t generation) {
    cluster::View view{.generation = generation, .closing = generation % 2 == 0};
    view.workers.assign(static_cast<std::size_t>(1 + generation % kMostWorkers),
                        static_cast<int>(generation));
    return view;
  };
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      for (std::int64_t generation = 1; generation <= kGroups;) {
        const auto view = views_.wait_for(generation, Deadline::in(60s));
        ASSERT_TRUE(view);
        ASSERT_EQ(*view, group(view->generation));
        generation = view->generation + 1;
      }
    });
  }
  for (std::int64_t generation = 1; generation <= kGroups; ++generation)
    views_.write(group(generation));
}

}  // namespace
}  // namespace cohort::launch
