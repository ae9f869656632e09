// Failing at every point of the recipe, and for the disk's own reasons: afterwards the newest whole
// checkpoint is the one before, or the new one with all its values, and never something between.

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "base/fail.h"
#include "base/failpoint.h"
#include "checkpoint/checkpoint_test_support.h"

namespace cohort::checkpoint {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

struct Point {
  const char* name;      ///< With the passing, where there are several.
  bool new_after_error;  ///< Whether the new one is saved where this point fails.
  bool new_after_kill;   ///< Whether it is found where the process dies here.
};

void PrintTo(const Point& point, std::ostream* out) {
  *out << point.name;
}

const std::vector<Point> kRecipe = {
    {"checkpoint.begin=", false, false},       {"checkpoint.file=", false, false},
    {"checkpoint.write=", false, false},       {"checkpoint.write=@3", false, false},
    {"checkpoint.sync=", false, false},        {"checkpoint.file=@2", false, false},
    {"checkpoint.sync=@2", false, false},      {"checkpoint.state=", false, false},
    {"checkpoint.manifest=", false, false},    {"checkpoint.sync=@4", false, false},
    {"checkpoint.sync-folder=", false, false}, {"checkpoint.rename=", false, false},
    {"checkpoint.sync-parent=", false, true},  {"checkpoint.verify=", false, true},
    {"checkpoint.latest=", false, true},       {"checkpoint.prune=", true, true},
    {"checkpoint.remove=", true, true},
};

std::string failpoint_text(const Point& point, const std::string& action) {
  std::string text = point.name;
  return text.insert(text.find('=') + 1, action);
}

class Recipe : public CheckpointFolderTest, public testing::WithParamInterface<Point> {
 protected:
  void SetUp() override {
    for (const std::int64_t step : {10, 20}) write(step);
  }
  void TearDown() override { set_failpoints(""); }

  void expect_going_on() {
    write(40);
    EXPECT_EQ(newest(), 40);
    EXPECT_EQ(latest(), "step-0000000040\n");
    EXPECT_EQ(names().size(), 3u) << testing::PrintToString(names());
  }

  void die_writing(std::int64_t step) {
    const pid_t child = ::fork();
    if (child == 0) {
      set_failpoints(failpoint_text(GetParam(), "kill"));
      write(step);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << GetParam().name << " was not passed";
  }
};

TEST_P(Recipe, AnErrorHereLeavesTheOldOneOrTheNewOneWhole) {
  set_failpoints(failpoint_text(GetParam(), "error"));
  const auto error = error_of([&] { write(30); });
  const bool saved = GetParam().new_after_error;
  EXPECT_EQ(!error, saved) << "said to be saved exactly where it is";
  EXPECT_EQ(newest(), saved ? 30 : 20);
  EXPECT_EQ(latest(), saved ? "step-0000000030\n" : "step-0000000020\n");
  if (!saved) {
    EXPECT_THAT(names(), UnorderedElementsAre("step-0000000010", "step-0000000020", "LATEST"));
  }
  expect_going_on();
}

TEST_P(Recipe, ADeathHereLeavesTheOldOneOrTheNewOneWhole) {
  die_writing(30);
  EXPECT_EQ(newest(), GetParam().new_after_kill ? 30 : 20);
  EXPECT_THAT(folder_.newest().notes, testing::IsEmpty());
  expect_going_on();
}

TEST_P(Recipe, AFailureWhileReplacingTheOnlyWholeOneLosesNothing) {
  fs::remove_all(folder_.path() / "step-0000000010");
  set_failpoints(failpoint_text(GetParam(), "error"));
  error_of([&] { write(20); });
  EXPECT_EQ(newest(), 20);
  if (!std::string(GetParam().name).starts_with("checkpoint.remove")) {
    die_writing(20);
    EXPECT_EQ(newest(), 20);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Recipe, testing::ValuesIn(kRecipe));

class FullDisk : public CheckpointFolderTest {
 protected:
  void expect_refused(const std::function<void()>& act, const std::string& file) {
    const auto error = error_of(act);
    ASSERT_TRUE(error) << "said to be saved";
    EXPECT_THAT(error->what(), HasSubstr(file));
  }
};

TEST_F(FullDisk, AShortWriteIsAnErrorThatNamesTheFile) {
  write(10);
  // A file may grow to the limit, so a part of the last piece is still written.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{500'001, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  expect_refused([&] { write(20); }, "model.safetensors");
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(newest(), 10);
  EXPECT_THAT(names(), UnorderedElementsAre("step-0000000010", "LATEST"));
}

TEST_F(FullDisk, ASmallDiskKeepsTheLastGoodOne) {
  const fs::path disk = temporary_.path() / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "this process may not mount: " << std::strerror(errno);
  }
  struct Unmount {
    const fs::path& path;
    ~Unmount() { ::umount(path.c_str()); }
  } unmount{disk};
  CheckpointFolder folder(disk / "checkpoints");
  // One fits beside each other two; the third must not cost the second.
  for (const std::int64_t step : {10, 20}) folder.write(Sample{step}.content());
  for (int again = 0; again < 2; ++again) {
    const auto error = error_of([&] { folder.write(Sample{30}.content()); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::no_space) << error->what();
    EXPECT_THAT(error->what(), HasSubstr("model.safetensors"));
    const auto found = folder.newest();
    ASSERT_TRUE(found.checkpoint);
    expect_whole(*found.checkpoint);
    EXPECT_EQ(found.checkpoint->step(), 20);
    EXPECT_EQ(read_file(folder.path() / "LATEST"), "step-0000000020\n");
    EXPECT_EQ(folder.all().size(), 2u);
  }
  fs::remove_all(folder.path() / "step-0000000010");
  folder.write(Sample{30}.content());
  EXPECT_EQ(folder.newest().checkpoint->step(), 30);
}

TEST_F(FullDisk, AFolderThatCannotBeWrittenToIsAnErrorThatNamesIt) {
  // Modes do not stop a superuser, a file in the folder's place stops everybody.
  std::ofstream(folder_.path()) << "in the way";
  expect_refused([&] { write(10); }, folder_.path());
  EXPECT_EQ(read_file(folder_.path()), "in the way");
}

TEST_F(FullDisk, ANameThatIsTakenIsAnErrorAndLeavesTheRest) {
  write(10);
  fs::remove(folder_.path() / "LATEST");
  fs::create_directories(folder_.path() / "LATEST" / "in the way");
  expect_refused([&] { write(20); }, "LATEST");
  EXPECT_EQ(newest(), 10);
  EXPECT_THAT(names(), Each(Not(StartsWith(".part"))));
  EXPECT_THAT(names(), Contains("step-0000000010"));
}

}  // namespace
}  // namespace cohort::checkpoint
