#include "chaos/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "base/fail.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"

/// Runs are made up: a folder with metrics.jsonl and a model file, and a summary in memory. Every
/// kind of loss is planted in one of them, and the sentence that must tell of it is looked for.

namespace cohort::chaos {
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
    const checkpoint::TensorView tensor{.name = "w",
                                        .shape = {static_cast<std::int64_t>(parameters.size())},
                                        .values = std::span<const float>(parameters)};
    checkpoint::write_safetensors(result.run_dir / "model.safetensors", std::span(&tensor, 1));
    log(result, {1, 2, 3});
    return result;
  }

  static void log(const FinishedRun& run, const std::vector<int>& steps) {
    std::ofstream lines(run.run_dir / "metrics.jsonl");
    for (const int step : steps) lines << "{\"step\": " << step << ", \"loss\": 1}\n";
  }

  static std::vector<std::string> compare(const FinishedRun& quiet, const FinishedRun& other) {
    return differences({.name = "s",
                        .settings = {},
                        .traits = {.loss_stops_all = true, .loss_changes_nothing = true}},
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
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(compare(quiet, run("nan-last", {1, nan})), ElementsAre(HasSubstr("parameters")));
  EXPECT_THAT(compare(quiet, run("nan-first", {nan, 2})), ElementsAre(HasSubstr("parameters")));
  other = run("no-tensors");
  checkpoint::write_safetensors(other.run_dir / "model.safetensors", {});
  EXPECT_THROW(compare(quiet, other), Error);
  EXPECT_THROW(compare(other, quiet), Error);
  other.summary = nullptr;
  EXPECT_THAT(compare(quiet, other), ElementsAre(HasSubstr("no summary.json")));
}

TEST_F(ChecksTest, AModelThatWasMovedTooFarOrNotFarEnoughIsFound) {
  const FinishedRun quiet = run("quiet");
  FinishedRun other = run("other");
  other.summary["steps"] = 1000;
  const auto loose = [&](double moved) {
    FinishedRun same = quiet;
    same.summary["steps"] = 1000;
    other.moved_steps = moved;
    return differences({.name = "s", .settings = {}}, same, other);
  };
  EXPECT_THAT(loose(1010), IsEmpty());
  EXPECT_THAT(loose(1100), ElementsAre(HasSubstr("moved as far as by 1100 steps, but 1000")));
  EXPECT_THAT(loose(900), ElementsAre(HasSubstr("as by 900 steps")));
  EXPECT_THAT(loose(std::numeric_limits<double>::quiet_NaN()), ElementsAre(HasSubstr("moved")));
}

TEST_F(ChecksTest, ServersThatCountedDifferentPushesAreFoundWhereNobodyGoesInStep) {
  FinishedRun quiet = run("quiet");
  quiet.summary["workers"] = 2;
  FinishedRun other = quiet;
  const auto with = [&](int first, int second, bool stops_all = false, std::int64_t per_push = 1) {
    const auto shard = [](int applied) {
      return nlohmann::json{{"applied", applied}, {"dropped", 0}, {"missing", 0}};
    };
    other.summary["shards"] = {shard(first), shard(second)};
    return differences({.name = "s",
                        .settings = {},
                        .servers = 2,
                        .traits = {.loss_stops_all = stops_all},
                        .steps_per_push = per_push},
                       quiet, other);
  };
  EXPECT_THAT(with(6, 6), IsEmpty());
  EXPECT_THAT(with(6, 5),
              ElementsAre(HasSubstr("server 1 has applied 5 pushes and misses 0, server 0 6 and 0"),
                          HasSubstr("server 1 accounts for 5 pushes; there were 6")));
  EXPECT_THAT(with(7, 7), ElementsAre(HasSubstr("server 0 accounts for 7"), HasSubstr("server 1")));
  EXPECT_THAT(with(2, 2, false, 3), IsEmpty()) << "how often is not known";
  EXPECT_THAT(with(6, 5, true), IsEmpty()) << "in step the parameters tell";
  other.summary.erase("shards");
  EXPECT_THAT(differences({.name = "s", .settings = {}, .servers = 2}, quiet, other),
              ElementsAre(HasSubstr("does not say")));
}

TEST_F(ChecksTest, APushThatNeverCameIsFound) {
  const nlohmann::json summary = {{"shards",
                                   {{{"applied", 6}, {"dropped", 0}, {"missing", 0}},
                                    {{"applied", 5}, {"dropped", 0}, {"missing", 1}}}}};
  EXPECT_THAT(shard_disagreements(summary, {.count = 6}),
              ElementsAre(HasSubstr("server 1 lacks 1 pushes; 0 tasks were lost")));
  EXPECT_THAT(shard_disagreements(summary, {.count = 6, .losses = 1}), IsEmpty());
  EXPECT_THAT(shard_disagreements(summary, {.count = 7, .losses = 1}),
              ElementsAre(HasSubstr("server 0 accounts for 6"), HasSubstr("server 1")));
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
}  // namespace cohort::chaos
