// metrics.jsonl as a chief writes it, cut where one takes over, and read while it grows.

#include "train/loop/chief_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace cohort::training {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ChiefLogTest : public testing::Test {
 protected:
  static void log_steps(ChiefLog& log, std::initializer_list<std::int64_t> steps) {
    for (const std::int64_t step : steps) log.step({.step = step, .loss = 0.5});
  }

  /// The steps of metrics.jsonl's lines; every line must be whole.
  std::vector<std::int64_t> steps() const {
    std::ifstream lines(metrics_);
    std::vector<std::int64_t> all;
    for (std::string line; std::getline(lines, line);) {
      all.push_back(nlohmann::json::parse(line).at("step"));
    }
    return all;
  }

  std::ptrdiff_t event_files() const {
    std::ptrdiff_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      count += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
    }
    return count;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path metrics_ = folder_.path() / "metrics.jsonl";
  LogOptions options_;
};

TEST_F(ChiefLogTest, GoingOnTakesBackLaterStepsAndAppends) {
  {
    ChiefLog log(folder_.path(), options_);
    log_steps(log, {10, 20});
    log.validation({.step = 20, .loss = 1});
    log_steps(log, {30, 40});
    log.validation({.step = 40, .loss = 1});
  }
  ChiefLog log(folder_.path(), options_, 20);
  EXPECT_THAT(steps(), ElementsAre(10, 20, 20));
  log_steps(log, {30});
  log.close();
  EXPECT_THAT(steps(), ElementsAre(10, 20, 20, 30));
  EXPECT_EQ(event_files(), 2);
}

TEST_F(ChiefLogTest, HalfALineOfOneWhoDiedIsTakenBack) {
  {
    ChiefLog log(folder_.path(), options_);
    log_steps(log, {10});
  }
  std::ofstream(metrics_, std::ios::app) << R"({"step":20,"lo)";
  ChiefLog log(folder_.path(), options_, 20);
  log_steps(log, {30});
  EXPECT_THAT(steps(), ElementsAre(10, 30));
}

TEST_F(ChiefLogTest, GoingOnWithoutALogBeginsOne) {
  ChiefLog log(folder_.path(), options_, 100);
  log_steps(log, {110});
  EXPECT_THAT(steps(), ElementsAre(110));
}

TEST_F(ChiefLogTest, ANewLogForgetsWhatWasThere) {
  std::ofstream(metrics_) << "of another run\n";
  options_.tensorboard = false;
  ChiefLog log(folder_.path(), options_);
  log_steps(log, {1});
  EXPECT_THAT(steps(), ElementsAre(1));
  EXPECT_EQ(event_files(), 0);
}

class MetricsTailTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "metrics.jsonl"; }

  static std::string line(std::int64_t step, const std::string& more = "") {
    return fmt::format("{{\"step\": {}, \"loss\": 1{}, \"lr\": 0.1}}\n", step, more);
  }

  void append(const std::string& text) const {
    const UniqueFd open = open_to_write(file(), Existing::append);
    write_all(open.get(), text, file());
  }

  std::vector<std::int64_t> told() {
    std::vector<std::int64_t> steps;
    tail_.read(folder_.path(), [&](const StepReport& step) { steps.push_back(step.step); });
    return steps;
  }

  TemporaryFolder folder_;
  MetricsTail tail_;
};

TEST_F(MetricsTailTest, TellsWholeLinesOfStepsOnce) {
  EXPECT_THAT(told(), IsEmpty());
  append(line(1) + "{\"step\": 1, \"validation_loss\": 2}\n" + line(2).substr(0, 9));
  EXPECT_THAT(told(), ElementsAre(1));
  append(line(2).substr(9) + line(3));
  EXPECT_THAT(told(), ElementsAre(2, 3));
  EXPECT_THAT(told(), IsEmpty());
}

// A new chief cuts the file and soon has written more than there was.
TEST_F(MetricsTailTest, ACutFileThatHasGrownAgainIsReadFromItsBeginning) {
  append(line(1) + line(2) + line(3) + line(4));
  EXPECT_THAT(told(), ElementsAre(1, 2, 3, 4));
  cut_metrics(file(), 2);
  append(line(3, "23456") + line(4, "234567") + line(5, "2345") + line(6));
  EXPECT_THAT(told(), ElementsAre(5, 6));
}

// The inode of a file that is gone may be that of the next one.
TEST_F(MetricsTailTest, AnotherFileWithTheSameInodeIsReadFromItsBeginning) {
  append(line(1) + line(2) + line(3) + line(4));
  EXPECT_THAT(told(), ElementsAre(1, 2, 3, 4));
  std::filesystem::resize_file(file(), 2 * line(1).size());
  append(line(5, std::string(3 * line(1).size(), '2')) + line(6));
  EXPECT_THAT(told(), ElementsAre(5, 6));
}

TEST_F(MetricsTailTest, StepsOfBeforeAreNotTold) {
  append(line(1) + line(2) + line(3));
  tail_.begin_after(2);
  EXPECT_THAT(told(), ElementsAre(3));
}

}  // namespace
}  // namespace cohort::training
