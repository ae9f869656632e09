#include "chaos/ongoing_event.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"

/// A history is written line by line, as a launcher would, and looked at after each.

namespace cohort::chaos {
namespace {

class OngoingEventTest : public testing::Test {
 protected:
  void lost(const std::string& role, int number, int pid) {
    history_ << R"({"event":"lost","role":")" << role << R"(","number":)" << number << R"(,"pid":)"
             << pid << R"(,"cause":"SIGKILL"})" << std::endl;
  }
  void ended(const std::string& role, int number, int pid) {
    history_ << R"({"event":"ended","role":")" << role << R"(","number":)" << number << R"(,"pid":)"
             << pid << "}" << std::endl;
  }
  void group(int number) {
    history_ << R"({"event":"group","group":)" << number << R"(,"step":5})" << std::endl;
  }
  void look() {
    watch_.refresh();
    event_.look(watch_, explained_);
  }

  TemporaryFolder folder_;
  std::ofstream history_{folder_.path() / "history.jsonl"};
  RunWatch watch_{folder_.path()};
  std::set<std::size_t> explained_;
  OngoingEvent event_;
};

TEST_F(OngoingEventTest, AGroupCountsThatComesAfterAllLosses) {
  event_.victims = {{.role = "worker", .number = 1, .pid = 11}, {.role = "server", .number = 1}};
  group(1);
  lost("worker", 1, 11);
  group(2);
  look();
  EXPECT_TRUE(event_.any_lost());
  EXPECT_FALSE(event_.all_lost());
  EXPECT_FALSE(event_.group.has_value());
  lost("server", 1, 12);
  look();
  EXPECT_TRUE(event_.all_lost());
  EXPECT_FALSE(event_.group.has_value());
  group(3);
  look();
  EXPECT_EQ(event_.group.value().group, 3);
  EXPECT_EQ(explained_.size(), 2u);
}

TEST_F(OngoingEventTest, TheLossOfAnotherProcessOfTheSameNumberIsNotItsOwn) {
  event_.victims = {{.role = "worker", .number = 1, .pid = 11}};
  lost("worker", 1, 10);
  lost("worker", 2, 11);
  look();
  EXPECT_FALSE(event_.any_lost());
}

TEST_F(OngoingEventTest, WhoHadDoneItsWorkIsForgottenUnlessItWasLost) {
  event_.victims = {{.role = "worker", .number = 1, .pid = 11},
                    {.role = "worker", .number = 2, .pid = 12},
                    {.role = "server", .number = 1, .pid = 13}};
  ended("worker", 1, 10);  // Another process that had the number before.
  lost("worker", 2, 12);
  ended("server", 1, 13);
  look();
  event_.forget_those_who_ended(watch_);
  EXPECT_EQ(victim_names(event_.victims), "worker 1 and worker 2");
  ended("worker", 1, 11);
  look();
  event_.forget_those_who_ended(watch_);
  EXPECT_EQ(victim_names(event_.victims), "worker 2");
}

TEST_F(OngoingEventTest, ALossIsExplainedByOneEventOnly) {
  event_.victims = {{.role = "worker", .number = 1}};
  lost("worker", 1, 10);
  look();
  EXPECT_TRUE(event_.all_lost());
  event_.victims = {{.role = "worker", .number = 1}};
  look();
  EXPECT_FALSE(event_.any_lost());
}

TEST(Victims, AreNamed) {
  EXPECT_EQ(victim_names({{.role = "worker", .number = 1}, {.role = "server", .number = 0}}),
            "worker 1 and server 0");
}

}  // namespace
}  // namespace cohort::chaos
