#include "train/loop/chief_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace cohort {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace cohort
