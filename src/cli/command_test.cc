#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

/// Runs the built command as a user's shell would.

namespace cohort::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

/// `words` are shell words. Runs in a folder of its own, so that nothing is written elsewhere.
Outcome cohort_command(const std::string& words) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const std::string err = folder.path() / "err";
  const std::string line = "cd '" + folder.path().string() + "' && '" COHORT_COMMAND "' " + words +
                           " >'" + out + "' 2>'" + err + "'";
  const int status = std::system(line.c_str());
  return {WEXITSTATUS(status), read_file(out), read_file(err)};
}

const std::string kBlobs = COHORT_SOURCE_DIR "/examples/blobs.toml";

/// Wrong use: one line on standard error that starts with the program's name, exit code 2.
void expect_refused(const Outcome& outcome, const std::string& words) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
  EXPECT_THAT(outcome.output, IsEmpty());
  EXPECT_THAT(outcome.errors, AllOf(StartsWith("cohort: "), HasSubstr(words)));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

TEST(Command, HelpAndVersion) {
  for (const char* words : {"--help", "help"}) {
    const Outcome outcome = cohort_command(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("train"), HasSubstr("score"), HasSubstr("data"),
                      HasSubstr("doctor"), HasSubstr("bench"), HasSubstr("Examples:")));
  }
  EXPECT_THAT(cohort_command("help train").output, HasSubstr("--print-config"));
  EXPECT_THAT(cohort_command("train --help").output, HasSubstr("--print-config"));
  const Outcome version = cohort_command("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output, StartsWith("cohort "));
}

TEST(Command, WithoutWordsShowsHelpAsAnError) {
  const Outcome outcome = cohort_command("");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("Examples:"));
}

TEST(Command, UnknownWordsNameTheNearest) {
  expect_refused(cohort_command("trian x.toml"), "did you mean \"train\"?");
  expect_refused(cohort_command("train x.toml --wrokers 2"), "did you mean --workers?");
  expect_refused(cohort_command("train --workers two x.toml"), "two");
  expect_refused(cohort_command("train x.toml --log-format xml"), "log-format");
  expect_refused(cohort_command("data imagenet"), "imagenet");
  expect_refused(cohort_command("data"), "mnist");
}

TEST(Command, WrongJobs) {
  expect_refused(cohort_command("train"), "train needs a job file");
  expect_refused(cohort_command("train nowhere.toml"), "nowhere.toml");
  expect_refused(cohort_command("train " + kBlobs + " --set train.epcohs=1"),
                 "did you mean train.epochs?");
  expect_refused(cohort_command("train " + kBlobs + " --workers 0"), "cluster.workers");
  expect_refused(cohort_command("train " + kBlobs + " --workers 65"),
                 "blobs.toml: a batch of 64 cannot be shared by 65 workers");
  expect_refused(cohort_command("train " + kBlobs + " --servers 1"), "uses no servers");
  expect_refused(cohort_command("train " + kBlobs + " --strategy gossp"), "strategy.kind");
  expect_refused(cohort_command("train " + kBlobs + " --engine inproc"), "cluster.engine");
  expect_refused(cohort_command("train " + kBlobs + " --resume auto"), "--resume auto");
}

TEST(Command, WrongScoring) {
  expect_refused(cohort_command("score"), "score needs the folder of a run");
  expect_refused(cohort_command("score nowhere"), "there is no folder nowhere");
  expect_refused(cohort_command("score . --input x.csv"), "has no model.json");
  expect_refused(cohort_command("score . --format xml"), "format");
  expect_refused(cohort_command("score . --inptu x.csv"), "did you mean --input?");
}

TEST(Command, PrintConfigPrintsTheResolvedJob) {
  const Outcome outcome = cohort_command("train --set train.epochs=5 --set job.name=x " + kBlobs +
                                         " --workers 3 --engine gloo --trace --print-config");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("epochs = 5\n"), HasSubstr("name = \"x\"\n"),
                                    HasSubstr("workers = 3\n"), HasSubstr("engine = \"gloo\"\n"),
                                    HasSubstr("trace = true\n"), HasSubstr("preset = \"mlp\"\n")));
}

TEST(Command, KeysAreListed) {
  const Outcome outcome = cohort_command("train --keys");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("`train.optimizer.lr`"));
}

TEST(Command, TrainsAndReturnsTheRunsExitCode) {
  const Outcome outcome = cohort_command(
      "train " + kBlobs + " --set train.epochs=1 --set checkpoint.every_steps=5 --run-dir run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST(Command, QuietPrintsNothing) {
  const Outcome outcome =
      cohort_command("train " + kBlobs + " --set train.epochs=1 --run-dir run --quiet");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, IsEmpty());
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST(Command, DoctorSaysWhatItFound) {
  const Outcome outcome = cohort_command("doctor");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("cores"), HasSubstr("LibTorch"), HasSubstr("BLAS"),
                                    HasSubstr("kernels"), HasSubstr("shared memory"),
                                    HasSubstr("can train here"), Not(HasSubstr("FATAL"))));
}

}  // namespace
}  // namespace cohort::cli
