#include "bench/program_group.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/deadline.h"
#include "base/files.h"
#include "bench/measured_process.h"

/// The programs are shell scripts.

namespace cohort::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Program shell(const std::string& script) {
  return {{"sh", "-c", script}, {}, -1};
}

TEST(RunTogether, ReturnsEachOutputAndPassesEnvironmentAndCore) {
  Program first = shell("echo $WHO $(nproc)");
  first.environment = {{"WHO", "first"}};
  first.core = allowed_cores().front();
  const Finished finished = run_together({{first, shell("echo second")}});
  EXPECT_TRUE(finished.succeeded) << finished.problem;
  EXPECT_THAT(finished.outputs, ElementsAre("first 1\n", "second\n"));
}

TEST(RunTogether, AVariableWithoutValueIsTakenOutOfTheCallersEnvironment) {
  Program program = shell("echo ${HOME-none} ${PATH:+some}");
  program.environment = {{"HOME", std::nullopt}};
  EXPECT_THAT(run_together({{program}}).outputs, ElementsAre("none some\n"));
}

TEST(RunTogether, NamesTheProgramThatFailedAndItsLastWords) {
  const Finished finished = run_together({{shell("sleep 600"), shell("echo no luck >&2; exit 3")}});
  EXPECT_FALSE(finished.succeeded);
  EXPECT_EQ(finished.problem, "sh ended with code 3: no luck");
}

TEST(RunTogether, SaysThatAProgramIsMissing) {
  const Finished finished = run_together({{{{"no-such-program"}, {}, -1}}});
  EXPECT_FALSE(finished.succeeded);
  EXPECT_THAT(finished.problem, HasSubstr("No such file"));
}

TEST(RunTogether, EndsWithTheTimeAndLeavesNothingRunning) {
  const TemporaryFolder folder;
  const auto pid_file = (folder.path() / "pid").string();
  ProgramGroup group{{shell("sleep 600 & echo $! > " + pid_file + "; wait")}};
  group.timeout_seconds = 3;
  const Finished finished = run_together(group);
  EXPECT_THAT(finished.problem, HasSubstr("did not end in time"));
  pid_t grandchild = 0;
  std::ifstream(pid_file) >> grandchild;
  ASSERT_GT(grandchild, 0);
  // Killed: gone, or a zombie of whoever inherits orphans here. On a busy machine it may take a
  // moment to die.
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  std::string word, state = "R";
  while (state != "Z" && !deadline.passed()) {
    std::ifstream status("/proc/" + std::to_string(grandchild) + "/stat");
    if (!(status >> word >> word >> state)) return;
    std::this_thread::yield();
  }
  EXPECT_EQ(state, "Z");
}

TEST(RunTogether, OnlyTheGroupEntersItsOwnNetwork) {
  const auto network = [] { return std::filesystem::read_symlink("/proc/self/ns/net").string(); };
  const std::string before = network();
  ProgramGroup group{{shell("readlink /proc/self/ns/net"), shell("readlink /proc/self/ns/net")}};
  group.private_network = true;
  const Finished finished = run_together(group);
  ASSERT_TRUE(finished.succeeded) << finished.problem;
  EXPECT_EQ(finished.outputs[0], finished.outputs[1]);
  EXPECT_EQ(network(), before);
}

TEST(InPath, FindsWhatIsThere) {
  EXPECT_TRUE(in_path("sh"));
  EXPECT_FALSE(in_path("no-such-program"));
}

}  // namespace
}  // namespace cohort::bench
