// When checkpoints are due and who writes them, on a real disk; faults are planted where one must
// fail.

#include "train/state/checkpoint_writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "os/file_lock.h"

namespace cohort::training {
namespace {

using std::chrono::seconds;

class ChiefCheckpointsTest : public testing::Test {
 protected:
  void TearDown() override { set_failpoints(""); }

  /// The steps of 1 … `last` at which one is due; each is saved.
  std::vector<std::int64_t> due_steps(std::int64_t first, std::int64_t last) {
    ChiefCheckpoints checkpoints(folder_.path(), job_);
    std::vector<std::int64_t> steps;
    for (std::int64_t step = first; step <= last; ++step) {
      if (!checkpoints.due(step)) continue;
      checkpoints.save_now(kPlace, *model_, filled(step));
      steps.push_back(step);
    }
    return steps;
  }

  ChiefCheckpoints::Fill filled(std::int64_t step) {
    return [this, step](tensor::TrainingState& state) {
      state.step = step;
      state.parameters.assign(tensor::ModelLayout::of(*model_).parameters.size,
                              static_cast<float>(step));
    };
  }

  std::int64_t newest() const {
    const auto found = checkpoint::CheckpointFolder(folder_.path() / "checkpoints").newest();
    return found.checkpoint ? found.checkpoint->step() : -1;
  }

  static constexpr CheckpointPlace kPlace{.samples = 64, .workers = 1};
  const TemporaryFolder folder_;
  Job job_;
  std::unique_ptr<Model> model_ = wrap(std::make_shared<torch::nn::LinearImpl>(3, 2));
};

TEST_F(ChiefCheckpointsTest, NoneIsDueWhereTheJobWantsNone) {
  EXPECT_THAT(due_steps(1, 300), testing::IsEmpty());
}

TEST_F(ChiefCheckpointsTest, OneIsDueEverySoManySteps) {
  job_.checkpoint.every_steps = 3;
  EXPECT_THAT(due_steps(1, 9), testing::ElementsAre(3, 6, 9));
}

TEST_F(ChiefCheckpointsTest, AfterAResumeTheNextIsDueWhereItWouldHaveBeen) {
  job_.checkpoint.every_steps = 100;
  EXPECT_THAT(due_steps(201, 310), testing::ElementsAre(300));
  EXPECT_THAT(due_steps(250, 310), testing::ElementsAre(300));
}

TEST_F(ChiefCheckpointsTest, AChiefThatSkipsStepsSavesAtTheFirstAfterAMultiple) {
  job_.checkpoint.every_steps = 10;
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  EXPECT_FALSE(checkpoints.due(3));
  EXPECT_FALSE(checkpoints.due(8));
  EXPECT_TRUE(checkpoints.due(13));
  checkpoints.save_now(kPlace, *model_, filled(12));
  EXPECT_FALSE(checkpoints.due(17));
  EXPECT_TRUE(checkpoints.due(22));
}

TEST_F(ChiefCheckpointsTest, OneIsDueEverySoManySeconds) {
  job_.checkpoint.every_seconds = 60;
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  const auto now = Clock::now();
  EXPECT_FALSE(checkpoints.due(1, now + seconds(30)));
  EXPECT_TRUE(checkpoints.due(2, now + seconds(61)));
  EXPECT_TRUE(checkpoints.due(3, now + seconds(62))) << "it was not saved";
  checkpoints.save_now(kPlace, *model_, filled(3));
  const auto saved = Clock::now();
  EXPECT_FALSE(checkpoints.due(4, saved + seconds(30)));
  EXPECT_TRUE(checkpoints.due(5, saved + seconds(61)));
}

TEST_F(ChiefCheckpointsTest, SavesInTheBackgroundAndItsEndWaitsForThat) {
  job_.checkpoint.every_steps = 1;
  {
    ChiefCheckpoints checkpoints(folder_.path(), job_);
    for (const std::int64_t step : {1, 2, 3}) checkpoints.save(kPlace, *model_, filled(step));
  }
  EXPECT_EQ(newest(), 3);
}

TEST_F(ChiefCheckpointsTest, AFailedSaveIsNoEndAndTheNextIsTried) {
  job_.checkpoint.every_steps = 10;
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  EXPECT_FALSE(checkpoints.due(1));
  set_failpoints("checkpoint.manifest=no-space");
  EXPECT_TRUE(checkpoints.due(10));
  checkpoints.save(kPlace, *model_, filled(10));
  checkpoints.save(kPlace, *model_, filled(20));
  checkpoints.finish(kPlace, *model_, filled(25));
  EXPECT_EQ(newest(), 25);
  EXPECT_EQ(checkpoint::CheckpointFolder(folder_.path() / "checkpoints").all().size(), 2u)
      << "20 and 25";
}

TEST_F(ChiefCheckpointsTest, SavingNowSaysWhereItFailed) {
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  set_failpoints("checkpoint.rename=no-space");
  EXPECT_THROW(checkpoints.save_now(kPlace, *model_, filled(5)), Error);
  EXPECT_EQ(newest(), -1);
  checkpoints.save_now(kPlace, *model_, filled(6));
  EXPECT_EQ(newest(), 6);
}

TEST_F(ChiefCheckpointsTest, TheEndIsSavedOnlyWhereTheJobWantsCheckpoints) {
  ChiefCheckpoints(folder_.path(), job_).finish(kPlace, *model_, filled(5));
  EXPECT_EQ(newest(), -1);
  job_.checkpoint.every_seconds = 1000;
  ChiefCheckpoints(folder_.path(), job_).finish(kPlace, *model_, filled(5));
  EXPECT_EQ(newest(), 5);
}

TEST_F(ChiefCheckpointsTest, AFailureAtTheEndIsAWarning) {
  job_.checkpoint.every_steps = 10;
  set_failpoints("checkpoint.begin=error");
  EXPECT_NO_THROW(ChiefCheckpoints(folder_.path(), job_).finish(kPlace, *model_, filled(5)));
}

class HandOverTest : public ChiefCheckpointsTest {
 protected:
  HandOverTest() {
    job_.checkpoint.every_steps = 1;
    create_folder(folder_.path() / "checkpoints" / ".part-of-another");
    written_by_another_.emplace(folder_.path() / "checkpoints" / ".lock", Deadline::in_seconds(60));
  }

  bool another_is_disturbed() const {
    return !std::filesystem::exists(folder_.path() / "checkpoints" / ".part-of-another");
  }

  std::optional<os::FileLock> written_by_another_;
};

TEST_F(HandOverTest, TheNewChiefWaitsInTheBackgroundForTheOldOnesCheckpoint) {
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  checkpoints.save(kPlace, *model_, filled(10));
  EXPECT_FALSE(checkpoints.due(11)) << "it is still to be written";
  EXPECT_FALSE(another_is_disturbed());
  written_by_another_.reset();
  checkpoints.wait_until_written();
  EXPECT_EQ(newest(), 10);
}

TEST_F(HandOverTest, WhoIsNotChiefAnyMoreDoesNotBeginToWrite) {
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  checkpoints.save(kPlace, *model_, filled(10));
  checkpoints.hand_over();
  checkpoints.wait_until_written();
  EXPECT_FALSE(another_is_disturbed());
  written_by_another_.reset();
  EXPECT_EQ(newest(), -1);
}

TEST_F(HandOverTest, WhoIsChiefAgainLooksWhatOthersHaveSaved) {
  written_by_another_.reset();
  ChiefCheckpoints checkpoints(folder_.path(), job_);
  ASSERT_TRUE(checkpoints.due(10));
  checkpoints.save_now(kPlace, *model_, filled(10));
  checkpoints.hand_over();
  ChiefCheckpoints(folder_.path(), job_).save_now(kPlace, *model_, filled(20));
  checkpoints.take_over();
  job_.checkpoint.every_steps = 15;
  EXPECT_FALSE(checkpoints.due(22));
  EXPECT_TRUE(checkpoints.due(30));
}

}  // namespace
}  // namespace cohort::training
