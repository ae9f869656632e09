#include "bench/benchmark.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "bench/peers.h"

/// Benchmarks whose contenders are shell scripts that print how long they say they took: so every
/// ratio is known before.

namespace cohort::bench {
namespace {

using testing::Contains;
using testing::Eq;
using testing::HasSubstr;
using testing::Pair;
using testing::StrEq;

Contender saying(const std::string& name, const std::string& line) {
  return {name, name, [line](const Case&) {
            return ProgramGroup{{{{"sh", "-c", "echo '" + line + "'"}, {}, -1}}};
          }};
}

/// Two contenders that print how long they say they took.
Benchmark example() {
  Benchmark benchmark;
  benchmark.name = "example";
  benchmark.cases = {{"small", 1, {}}, {"large", 1, {}}};
  benchmark.contenders = {saying("us", R"({"t": 1})"), saying("them", R"({"t": 3})")};
  benchmark.left_out = {{"others", "others (package libothers)"}};
  benchmark.read = [](const Measurement& run) {
    const Metric metric{run.what.name, Unit::seconds};
    return std::vector<Reading>{{metric, run.who.label, run.lines.at(0).at("t").get<double>()}};
  };
  return benchmark;
}

struct Outcome {
  int exit_code = 0;
  std::string text;
  nlohmann::json json;
};

BenchOptions quick(std::vector<std::string> only = {}) {
  BenchOptions options;
  options.only = std::move(only);
  options.quick = true;
  return options;
}

Outcome run(const Benchmark& benchmark, BenchOptions options = {}) {
  const TemporaryFolder folder;
  options.json_path = (folder.path() / "figures.json").string();
  testing::internal::CaptureStdout();
  const int exit_code = run_benchmark(benchmark, options);
  return {exit_code, testing::internal::GetCapturedStdout(),
          nlohmann::json::parse(read_file(options.json_path))};
}

TEST(RunBenchmark, RunsEveryContenderInEveryRound) {
  const Outcome outcome = run(example());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("3.00x"));
  EXPECT_THAT(outcome.text, HasSubstr("left out: others (package libothers)"));
  ASSERT_EQ(outcome.json["metrics"].size(), 2U);
  EXPECT_EQ(outcome.json["metrics"][1]["contenders"][1]["rounds"].size(), 7U);
}

TEST(RunBenchmark, QuickIsOneRoundAndSaysThatItMeansNothing) {
  const Outcome outcome = run(example(), quick());
  EXPECT_THAT(outcome.text, HasSubstr("quick: figures mean nothing"));
  EXPECT_EQ(outcome.json["metrics"][0]["contenders"][0]["rounds"].size(), 1U);
}

TEST(RunBenchmark, TooFewRoundsAreRefused) {
  BenchOptions options;
  options.rounds = 6;
  EXPECT_THROW(run_benchmark(example(), options), Error);
}

TEST(RunBenchmark, OnlyNarrowsCasesAndContendersAndKeepsTheReference) {
  auto benchmark = example();
  benchmark.contenders.push_back(saying("third", R"({"t": 2})"));
  const Outcome outcome = run(benchmark, quick({"large", "third"}));
  ASSERT_EQ(outcome.json["metrics"].size(), 1U);
  EXPECT_EQ(outcome.json["metrics"][0]["name"], "large");
  EXPECT_EQ(outcome.json["metrics"][0]["contenders"].size(), 2U);
  EXPECT_EQ(outcome.json["metrics"][0]["contenders"][1]["name"], "third");
}

TEST(RunBenchmark, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    run_benchmark(example(), quick({"thme"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("them"));
  }
}

TEST(RunBenchmark, APeerThatFailsIsReportedAndTheOthersGoOn) {
  auto benchmark = example();
  benchmark.contenders.push_back(saying("broken", "no JSON"));
  const Outcome outcome = run(benchmark, quick({"small"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("failed: broken, small"));
  EXPECT_EQ(outcome.json["problems"].size(), 1U);
  EXPECT_EQ(outcome.json["metrics"][0]["contenders"].size(), 2U);
}

/// A program that is called as ours would be, and says another time.
std::string other_build(const TemporaryFolder& folder) {
  const auto path = folder.path() / "other";
  write_file_atomically(path, "#!/bin/sh\necho '{\"t\": 5}'\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

TEST(RunBenchmark, AnotherBuildRunsBesideOursOnTheSameTerms) {
  const TemporaryFolder folder;
  auto benchmark = example();
  benchmark.contenders.front().own = true;
  BenchOptions options = quick({"small"});
  options.against = other_build(folder);
  const Outcome outcome = run(benchmark, options);
  const auto& contenders = outcome.json["metrics"][0]["contenders"];
  ASSERT_EQ(contenders.size(), 3U);
  EXPECT_EQ(contenders[1]["name"], "us of " + options.against);
  EXPECT_EQ(contenders[1]["ratio"]["median"], 5);
}

TEST(RunBenchmark, AnotherBuildThatCannotBeRunIsRefused) {
  auto benchmark = example();
  benchmark.contenders.front().own = true;
  BenchOptions options = quick();
  options.against = "/nowhere/cohort";
  try {
    run_benchmark(benchmark, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--against /nowhere/cohort"));
  }
}

TEST(PeerSettings, APeerAsInstalledGetsNothingThatCohortSet) {
  const PeerSetting setting = as_installed({{"OPENBLAS_CORETYPE", "SkylakeX", "Prescott"}});
  for (const char* name : {"OPENBLAS_CORETYPE", "COHORT_KERNELS"}) {
    EXPECT_THAT(setting.environment, Contains(Pair(StrEq(name), Eq(std::nullopt)))) << name;
  }
  EXPECT_FALSE(setting.is_tuned());
}

TEST(PythonWithTorch, AWantedOneWithoutItIsRefused) {
  try {
    python_with_torch("/bin/false");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--python /bin/false has no PyTorch"));
  }
}

TEST(RunBenchmark, AReferenceThatFailsIsAFailure) {
  auto benchmark = example();
  benchmark.contenders.front() = saying("us", "no JSON");
  EXPECT_EQ(run(benchmark, quick()).exit_code, 1);
}

}  // namespace
}  // namespace cohort::bench
