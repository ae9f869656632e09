// Who serves a store goes after all others, but for those that have died.

#include "meet/attendance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

namespace cohort::meet {
namespace {

class AttendanceTest : public ::testing::Test {
 protected:
  std::unique_ptr<cluster::Store> connect() {
    return std::make_unique<cluster::PrefixStore>(store_, "");
  }

  cluster::MemoryStore store_;
};

TEST_F(AttendanceTest, AwaitsWhoIsThere) {
  Attendance server(connect(), 0);
  std::optional<Attendance> one(std::in_place, connect(), 1), two(std::in_place, connect(), 2);
  std::atomic<int> there = 2;
  std::jthread others([&] {
    for (auto* each : {&one, &two}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      --there;
      each->reset();
    }
  });
  const auto start = Clock::now();
  server.await_others({0, 1, 2}, Deadline::in_seconds(60));
  EXPECT_EQ(there, 0);
  EXPECT_LT(seconds_since(start), 2) << "who has gone is not awaited";
}

TEST_F(AttendanceTest, AwaitsWhoeverLivesLongerThanItsPatience) {
  Attendance server(connect(), 0);
  std::atomic<bool> there = true;
  std::jthread other([&] {
    const Attendance one(connect(), 1);
    std::this_thread::sleep_for(Attendance::kPatience + 2 * Attendance::kBeat);
    there = false;
  });
  server.await_others({1}, Deadline::in_seconds(60));
  EXPECT_FALSE(there);
}

TEST_F(AttendanceTest, AwaitsNobodyWhoHasDied) {
  Attendance server(connect(), 0);
  store_.add("there/1", 7);  // It was there once.
  const auto start = Clock::now();
  server.await_others({1, 2}, Deadline::in_seconds(60));
  EXPECT_LT(seconds_since(start), 30);
}

TEST_F(AttendanceTest, AwaitsNobodyBeyondADeadline) {
  Attendance server(connect(), 0);
  const Attendance one(connect(), 1);
  const auto start = Clock::now();
  server.await_others({1}, Deadline::in_seconds(0.1));
  EXPECT_LT(seconds_since(start), 3);
}

}  // namespace
}  // namespace cohort::meet
