// The folder of a run: what it begins with, and when it is refused.

#include "train/run/run_folder.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.h"

namespace cohort::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class RunFolderTest : public testing::Test {
 protected:
  RunFolder make(bool goes_on = false, int threads = 2) const {
    return RunFolder(job_, wanted_.string(), goes_on, threads);
  }

  std::string refusal() const {
    try {
      make();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return "";
  }

  const TemporaryFolder parent_;
  const std::filesystem::path wanted_ = parent_.path() / "run";
  Job job_;
};

TEST_F(RunFolderTest, BeginsWithTheJobAndTheMachine) {
  job_.seed = 17;
  const RunFolder folder = make();
  EXPECT_EQ(folder.path(), wanted_);
  EXPECT_THAT(read_file(wanted_ / "config.toml"), HasSubstr("seed = 17"));
  const auto machine = nlohmann::json::parse(read_file(wanted_ / "env.json"));
  EXPECT_EQ(machine.at("seed"), 17);
  EXPECT_EQ(machine.at("threads_per_worker"), 2);
  EXPECT_EQ(folder.log_of("worker-3"), wanted_ / "logs" / "worker-3.log");
  EXPECT_TRUE(std::filesystem::is_directory(wanted_ / "logs"));
}

TEST_F(RunFolderTest, ThreadsThatNobodyKnowsYetAreNull) {
  make(false, 0);
  const auto machine = nlohmann::json::parse(read_file(wanted_ / "env.json"));
  EXPECT_TRUE(machine.at("threads_per_worker").is_null());
}

TEST_F(RunFolderTest, IsNotMadeWhereSomethingIsAlready) {
  make();
  EXPECT_THAT(refusal(), HasSubstr("exists already"));
  std::filesystem::remove_all(wanted_);
  write_file_atomically(wanted_, "no folder");
  EXPECT_THAT(refusal(), HasSubstr("is not a folder"));
}

TEST_F(RunFolderTest, IsItsOwnersAloneAlsoWhereItWasNot) {
  const mode_t before = ::umask(0);
  make();
  EXPECT_EQ(std::filesystem::status(wanted_).permissions(), std::filesystem::perms::owner_all);
  std::filesystem::permissions(wanted_, std::filesystem::perms::all);
  make(/*goes_on=*/true);
  EXPECT_EQ(std::filesystem::status(wanted_).permissions(), std::filesystem::perms::owner_all);
  ::umask(before);
}

/// Root gives one away; others find one that is root's.
TEST_F(RunFolderTest, OfSomebodyElseIsRefusedAndNotTouched) {
  std::filesystem::path theirs = "/";
  if (::geteuid() == 0) {
    make();
    theirs = wanted_;
    std::filesystem::permissions(theirs, std::filesystem::perms::all);
    ASSERT_EQ(::chown(theirs.c_str(), 12345, 12345), 0);
    EXPECT_THAT([&] { check_nobody_runs_in(theirs); },
                ThrowsMessage<Error>(HasSubstr("belongs to another user")));
  }
  const auto before = std::filesystem::status(theirs).permissions();
  EXPECT_THAT([&] { RunFolder(job_, theirs.string(), /*goes_on=*/true, 1); },
              ThrowsMessage<Error>(HasSubstr("belongs to another user")));
  EXPECT_EQ(std::filesystem::status(theirs).permissions(), before);
}

TEST_F(RunFolderTest, IsFreeAgainWhenItsRunIsOver) {
  make();
  check_nobody_runs_in(wanted_);
  make(/*goes_on=*/true);
  check_nobody_runs_in(parent_.path());  // Nobody ever ran there.
}

}  // namespace
}  // namespace cohort::training
