#include "chaos/watch/run_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"

/// The files of a run are written here as the processes of one would, also cut in the middle of a
/// line.

namespace cohort::chaos {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunWatchTest : public testing::Test {
 protected:
  void append(const std::string& file, const std::string& text) {
    std::ofstream(folder_.path() / file, std::ios::app) << text;
    watch_.refresh();
  }

  TemporaryFolder folder_;
  RunWatch watch_{folder_.path()};
};

TEST_F(RunWatchTest, AnEmptyFolderTellsNothing) {
  watch_.refresh();
  EXPECT_THAT(watch_.tasks(), IsEmpty());
  EXPECT_EQ(watch_.step(), 0);
  EXPECT_EQ(watch_.checkpoint_step(), -1);
  EXPECT_TRUE(watch_.summary().is_null());
}

TEST_F(RunWatchTest, TasksWithTheirRanks) {
  append("tasks.json", R"({"launcher": 1, "group": 2, "tasks": [
      {"role": "worker", "number": 1, "pid": 11, "rank": 0},
      {"role": "worker", "number": 0, "pid": 12, "rank": null},
      {"role": "server", "number": 0, "pid": 13, "rank": null}]})");
  ASSERT_EQ(watch_.tasks().size(), 3u);
  EXPECT_EQ(watch_.tasks()[0].rank, 0);
  EXPECT_EQ(watch_.tasks()[1].rank, std::nullopt);
  EXPECT_EQ(watch_.tasks()[2].pid, 13);
}

TEST_F(RunWatchTest, TheLastStepIsThatOfTheLastWholeLine) {
  append("metrics.jsonl",
         "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 2}\n{\"step\": 3, \"lo");
  EXPECT_EQ(watch_.step(), 2);
  append("metrics.jsonl", "ss\": 1}\n{\"step\": 9, \"validation_loss\": 1}\n");
  EXPECT_EQ(watch_.step(), 3);
  EXPECT_THAT(logged_steps(folder_.path()), ElementsAre(1, 2, 3));
}

TEST_F(RunWatchTest, AFileThatWasCutIsReadAnew) {
  std::string lines;
  for (int step = 1; step <= 500; ++step) {
    lines += "{\"step\": " + std::to_string(step) + ", \"loss\": 1}\n";
  }
  append("metrics.jsonl", lines);
  EXPECT_EQ(watch_.step(), 500);
  write_file_atomically(folder_.path() / "metrics.jsonl", "{\"step\": 1, \"loss\": 1}\n");
  watch_.refresh();
  EXPECT_EQ(watch_.step(), 1);
}

TEST_F(RunWatchTest, LossesAndTheGroupsThatFollow) {
  append(
      "history.jsonl",
      "{\"event\": \"group\", \"group\": 1, \"step\": -1}\n"
      "{\"event\": \"lost\", \"role\": \"worker\", \"number\": 2, \"pid\": 7, \"cause\": \"c\"}\n"
      "{\"event\": \"grou");
  ASSERT_EQ(watch_.losses().size(), 1u);
  EXPECT_EQ(watch_.losses()[0].number, 2);
  EXPECT_EQ(watch_.losses()[0].pid, 7);
  EXPECT_FALSE(watch_.group_after(watch_.losses()[0].line));
  append("history.jsonl", "p\", \"group\": 2, \"step\": 40}\n");
  const auto group = watch_.group_after(watch_.losses()[0].line);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->group, 2);
  EXPECT_EQ(group->step, 40);
}

TEST_F(RunWatchTest, TheNewestCheckpointIsWhole) {
  for (const char* name : {"step-0000000040", "step-0000000020", ".new-step-0000000060"}) {
    create_folder(folder_.path() / "checkpoints" / name);
  }
  EXPECT_EQ(watch_.checkpoint_step(), 40);
}

TEST_F(RunWatchTest, TailsOfAllLogs) {
  create_folder(folder_.path() / "logs");
  append("logs/worker-0.log", std::string(5000, 'x') + "the end\n");
  append("logs/server-0.log", "other\n");
  const std::string tails = log_tails(folder_.path());
  EXPECT_THAT(tails, HasSubstr("the end"));
  EXPECT_THAT(tails, HasSubstr("server-0.log\nother"));
  EXPECT_LT(tails.size(), 2000u);
}

}  // namespace
}  // namespace cohort::chaos
