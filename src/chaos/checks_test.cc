#include "chaos/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ChecksTest : public testing::Test {
 protected:
  FinishedRun run(const std::string& name, const std::vector<float>& parameters = {1, 2}) {
    FinishedRun result{
        .run_dir = folder_.path() / name,
        .summary = {{"status", "completed"}, {"steps", 3}, {"samples", 30}, {"accuracy", 0.9}}};
    create_folder(result.run_dir);
    const TensorView tensor{.name = "w",
                            .shape = {static_cast<std::int64_t>(parameters.size())},
                            .values = std::span<const float>(parameters)};
    write_safetensors(result.run_dir / "model.safetensors", std::span(&tensor, 1));
    log(result, {1, 2, 3});
    return result;
  }

  static void log(const FinishedRun& run, const std::vector<int>& steps) {
    std::ofstream lines(run.run_dir / "metrics.jsonl");
    for (const int step : steps) lines << "{\"step\": " << step << ", \"loss\": 1}\n";
  }

  static std::vector<std::string> compare(const FinishedRun& quiet, const FinishedRun& other) {
    return differences({.name = "s", .settings = {}, .lockstep = true, .same_parameters = true},
                       quiet, other);
  }

  TemporaryFolder folder_;
};

TEST_F(ChecksTest, EqualRunsHaveNoDifferences) {
  EXPECT_THAT(compare(run("a"), run("b", {1, 2.00001f})), IsEmpty());
}

TEST_F(ChecksTest, EachLossIsFound) {
  const FinishedRun quiet = run("quiet");
  FinishedRun other = run("steps");
  other.summary["steps"] = 2;
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("steps is 2")));
  other = run("samples");
  other.summary["samples"] = 31;
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("samples is 31")));
  other = run("accuracy");
  other.summary["accuracy"] = 0.894;
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("accuracy is 0.894")));
  other.summary["accuracy"] = 0.896;
  EXPECT_THAT(compare(quiet, other), IsEmpty());
  other.summary["accuracy"] = nullptr;
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("accuracy is null")));
  EXPECT_THAT(compare(quiet, run("parameters", {1, 2.001f})), ElementsAre(HasSubstr("parameters")));
  EXPECT_THAT(compare(quiet, run("nan", {1, std::numeric_limits<float>::quiet_NaN()})),
              ElementsAre(HasSubstr("parameters")));
  other.summary = nullptr;
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("no summary.json")));
}

TEST_F(ChecksTest, StepsThatAreMissingOrTwiceAreFound) {
  const FinishedRun quiet = run("quiet");
  FinishedRun other = run("other");
  log(other, {1, 2, 2, 3});
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("has step 2 after step 2")));
  for (const std::vector<int>& steps : {std::vector{1, 3}, std::vector{1, 2}}) {
    other.losses = 0;
    log(other, steps);
    EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("lacks 1 of 3 steps")));
    other.losses = 1;
    EXPECT_THAT(compare(quiet, other), IsEmpty());
  }
}

}  // namespace
}  // namespace cohort
