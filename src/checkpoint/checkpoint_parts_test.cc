// A checkpoint that several tasks write together: all of it or nothing, whoever fails or dies.

#include "checkpoint/checkpoint_parts.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "base/fail.h"
#include "base/failpoint.h"
#include "checkpoint/checkpoint_test_support.h"
#include "checkpoint/new_folder.h"

namespace cohort::checkpoint {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

std::string file_of(int task) {
  return "worker-" + std::to_string(task) + ".safetensors";
}

class JointCheckpoints : public CheckpointFolderTest {
 protected:
  void SetUp() override { write(10); }
  void TearDown() override { set_failpoints(""); }

  JointCheckpoint joint(std::int64_t step) const {
    return {.folder = folder_.path(), .attempt = attempt(step)};
  }
  static JointAttempt attempt(std::int64_t step) {
    return {.generation = 3, .token = 17, .number = static_cast<std::uint32_t>(step)};
  }

  /// What task `task` has alone.
  void write_own(std::int64_t step, int task) const {
    const std::vector<float> own(50'000 + static_cast<std::size_t>(task),
                                 static_cast<float>(step + task));
    CheckpointContent::File file;
    file.name = file_of(task);
    file.tensors = {{"own", {static_cast<std::int64_t>(own.size())}, std::span(own)}};
    write_part(joint(step), task, {&file, 1});
  }

  /// The committer's end; returns what was wrong, or nothing.
  std::string commit(std::int64_t step, std::vector<int> tasks) {
    try {
      folder_.write(Sample{step}.content(), {.attempt = attempt(step),
                                             .tasks = std::move(tasks),
                                             .give_up = [this] { return lost_.load(); },
                                             .patience = std::chrono::seconds(60)});
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  void expect_joint(std::int64_t step, const std::vector<int>& tasks) {
    EXPECT_EQ(newest(), step);
    const Checkpoint checkpoint(folder_.path() / checkpoint_name(step));
    std::vector<std::string> expected = {"model.safetensors", "optimizer.safetensors", kStateName};
    for (const int task : tasks) {
      expected.push_back(file_of(task));
      const auto file = checkpoint.tensors(file_of(task));
      EXPECT_THAT(file.floats("own"), Each(static_cast<float>(step + task)));
    }
    EXPECT_EQ(checkpoint.files(), expected);
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(checkpoint.path())) ++entries;
    EXPECT_EQ(entries, expected.size() + 1) << "nothing else is left in it";
  }

  /// As before, and the next one is saved.
  void expect_untouched() {
    EXPECT_EQ(newest(), 10);
    EXPECT_THAT(names(), Each(Not(StartsWith(".part"))));
    lost_ = false;
    std::thread other([this] { write_own(40, 1); });
    EXPECT_EQ(commit(40, {1}), "");
    other.join();
    expect_joint(40, {1});
  }

  std::atomic<bool> lost_ = false;
};

TEST_F(JointCheckpoints, AllPartsAreCommittedTogetherWhoeverComesFirst) {
  write_own(20, 3);
  std::thread late([this] { write_own(20, 1); });
  EXPECT_EQ(commit(20, {1, 3}), "");
  late.join();
  expect_joint(20, {1, 3});
  EXPECT_EQ(latest(), "step-0000000020\n");
  EXPECT_EQ(names().size(), 3u) << testing::PrintToString(names());
}

TEST_F(JointCheckpoints, AStepThatIsThereAlreadyIsReplaced) {
  write_own(10, 1);
  EXPECT_EQ(commit(10, {1}), "");
  expect_joint(10, {1});
}

TEST_F(JointCheckpoints, APartThatIsBrokenAfterwardsIsNoticed) {
  write_own(20, 1);
  EXPECT_EQ(commit(20, {1}), "");
  const fs::path part = folder_.path() / "step-0000000020" / file_of(1);
  std::fstream(part, std::ios::in | std::ios::out).seekp(1000) << "?";
  EXPECT_EQ(newest(), 10);
}

TEST_F(JointCheckpoints, WhoNeedsOnePartReadsNoOther) {
  write_own(20, 1);
  write_own(20, 2);
  EXPECT_EQ(commit(20, {1, 2}), "");
  const fs::path path = folder_.path() / "step-0000000020";
  std::fstream(path / file_of(1), std::ios::in | std::ios::out).seekp(1000) << "?";
  const Checkpoint second(path, [](const std::string& name) { return name == file_of(2); });
  EXPECT_THAT(second.files(), ElementsAre(kStateName, file_of(2)));
  EXPECT_THAT(second.tensors(file_of(2)).floats("own"), Each(22.0F));
  EXPECT_THROW(second.tensors(file_of(1)), Error) << "it was not looked at";
  EXPECT_THROW(Checkpoint(path, [](const std::string& name) { return name == file_of(1); }), Error);
}

TEST_F(JointCheckpoints, WhoIsLostLeavesTheOneBeforeUntouched) {
  lost_ = true;
  EXPECT_THAT(commit(20, {1}), HasSubstr("worker 1 has not written its part"));
  expect_untouched();
}

TEST_F(JointCheckpoints, WhoWasLostAfterItsReportIsNotMissed) {
  write_own(20, 1);
  lost_ = true;
  EXPECT_EQ(commit(20, {1}), "");
  expect_joint(20, {1});
}

TEST_F(JointCheckpoints, PatienceHasAnEnd) {
  std::string error;
  try {
    folder_.write(Sample{20}.content(), {.attempt = {.generation = 1, .token = 5, .number = 1},
                                         .tasks = {2},
                                         .patience = std::chrono::milliseconds(1)});
  } catch (const Error& wrong) {
    error = wrong.what();
  }
  EXPECT_THAT(error, HasSubstr("worker 2 has not written its part"));
  expect_untouched();
}

TEST_F(JointCheckpoints, WhoCannotWriteSaysWhy) {
  refuse_part(joint(20), 1, "its disk is full of holes");
  EXPECT_THAT(commit(20, {1}), AllOf(HasSubstr("worker 1"), HasSubstr("full of holes")));
  expect_untouched();
}

TEST_F(JointCheckpoints, WhatAnotherAttemptHasLeftIsNoPart) {
  const JointCheckpoint other{.folder = folder_.path(),
                              .attempt = {.generation = 3, .token = 18, .number = 20}};
  refuse_part(other, 1, "of another attempt");
  CheckpointContent::File file;
  file.name = file_of(1);
  write_part(other, 2, {&file, 1});
  lost_ = true;
  EXPECT_THAT(commit(20, {2}), HasSubstr("worker 2 has not written its part"));
  expect_untouched();
}

TEST_F(JointCheckpoints, WhoIsQuickMayBeAtTheNextOneAlready) {
  write_own(20, 1);
  write_own(30, 1);
  EXPECT_EQ(commit(20, {1}), "");
  EXPECT_EQ(commit(30, {1}), "");
  expect_joint(30, {1});
  EXPECT_THAT(names(), Each(Not(StartsWith(".part"))));
}

TEST_F(JointCheckpoints, WhatEarlierAttemptsHaveLeftIsRemoved) {
  write_own(20, 1);
  write_own(30, 1);
  refuse_part({.folder = folder_.path(), .attempt = {.generation = 2, .token = 9, .number = 50}}, 1,
              "of an earlier group");
  EXPECT_EQ(commit(30, {1}), "");
  EXPECT_THAT(names(), Each(Not(StartsWith(".part"))));
}

// A writer that was long delayed must not take what the next group's workers have written for a
// leftover: they have reported, and will not write it again.
TEST_F(JointCheckpoints, ALaterGroupsPartOutlivesAnEarlierGroupsWriter) {
  write_own(30, 1);
  EXPECT_THROW(
      folder_.write(Sample{20}.content(), {.attempt = {.generation = 2, .token = 99, .number = 80},
                                           .tasks = {1},
                                           .give_up = [] { return true; }}),
      Error);
  folder_.write(Sample{20}.content(), {.attempt = {.generation = 2}});  // Alone.
  EXPECT_EQ(commit(30, {1}), "");
  expect_joint(30, {1});
}

TEST_F(JointCheckpoints, LeftoversOfAnyGroupCanBeRemoved) {
  write_own(20, 1);
  folder_.remove_leftovers();
  EXPECT_THAT(names(), Each(Not(StartsWith(".part"))));
}

/// Under every name that can be foreseen: of the folder of one task, of several, and of a file.
TEST_F(JointCheckpoints, NothingIsWrittenThroughALinkThatSomebodyPlanted) {
  const TemporaryFolder victim;
  fs::create_directory_symlink(victim.path(), folder_.path() / ".part-step-0000000020");
  write(20);
  EXPECT_EQ(newest(), 20);

  fs::create_directory_symlink(victim.path(), folder_.path() / ".part-all-3-17-30");
  EXPECT_THAT([&] { write_own(30, 1); }, testing::ThrowsMessage<Error>(HasSubstr("is a link")));
  EXPECT_THAT(commit(30, {1}), HasSubstr("is a link"));

  const fs::path file = victim.path() / "file";
  write_file_atomically(file, "precious");
  fs::create_symlink(file, make_joint_folder(folder_.path(), attempt(40)) / file_of(1));
  EXPECT_THROW(write_own(40, 1), Error);
  EXPECT_EQ(read_file(file), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(victim.path()), fs::directory_iterator()), 1);
}

TEST_F(JointCheckpoints, AReportThatSpeaksOfAnotherFileIsNotBelieved) {
  write_own(20, 1);
  const fs::path meeting = folder_.path() / ".part-all-3-17-20";
  write_file_atomically(meeting / "report-1", to_text(Manifest{.files = {{"elsewhere", 3, 7}}}));
  EXPECT_THAT(commit(20, {1}), HasSubstr("elsewhere is missing"));
  expect_untouched();
}

TEST_F(JointCheckpoints, ACommitterWhoseFolderIsTakenAwayDoesNotWaitForEver) {
  std::string error;
  std::thread committer([&] { error = commit(20, {1}); });
  const fs::path meeting = folder_.path() / ".part-all-3-17-20";
  while (!fs::exists(meeting / kStateName)) std::this_thread::yield();
  // Another writer takes it for what a dead one has left.
  folder_.write(Sample{30}.content());
  committer.join();
  EXPECT_THAT(error, HasSubstr("was removed while it was being written"));
  EXPECT_EQ(newest(), 30);
  EXPECT_THAT(names(), Each(Not(StartsWith(".part"))));
}

TEST_F(JointCheckpoints, ACommitterThatDiesWaitingLeavesTheOneBefore) {
  write_own(20, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    set_failpoints("checkpoint.reports=kill");
    commit(20, {1});
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(newest(), 10);
  EXPECT_EQ(commit(30, {}), "") << "the next writer clears up";
  EXPECT_THAT(names(), UnorderedElementsAre("step-0000000010", "step-0000000030", "LATEST"));
}

/// At every point of a part's way to the disk.
class PartRecipe : public JointCheckpoints, public testing::WithParamInterface<const char*> {};

TEST_P(PartRecipe, AnErrorHereIsToldAndLeavesTheOneBefore) {
  set_failpoints(std::string(GetParam()) + "=error");
  EXPECT_THROW(write_own(20, 1), Error);
  set_failpoints("");
  EXPECT_THAT(commit(20, {1}),
              AllOf(HasSubstr("worker 1 could not write its part"), HasSubstr(GetParam())));
  expect_untouched();
}

TEST_P(PartRecipe, ADeathHereLeavesTheOneBefore) {
  const pid_t child = ::fork();
  if (child == 0) {
    set_failpoints(std::string(GetParam()) + "=kill");
    write_own(20, 1);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it was not passed";
  lost_ = true;
  EXPECT_THAT(commit(20, {1}), HasSubstr("worker 1 has not written its part"));
  expect_untouched();
}

INSTANTIATE_TEST_SUITE_P(All, PartRecipe,
                         testing::Values("checkpoint.part", "checkpoint.write", "checkpoint.sync",
                                         "checkpoint.report"));

}  // namespace
}  // namespace cohort::checkpoint
