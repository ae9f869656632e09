// What a TrainingState says of the work that is left and of what is a worker's own, and the record
// of a model that stays in memory from one group of workers to the next.

#include "strategy/model_state.h"

#include <gmock/gmock.h>

#include "gossip/claims.h"
#include "os/memory.h"
#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ModelRecord, HoldsUntilAGroupBeginsAndFromTheNextWritingOn) {
  const os::PrivateMemory memory(ModelRecord::bytes_needed(2));
  ModelRecord record(memory.bytes(), 2);
  EXPECT_TRUE(record.holds());
  record.write({.step = 4, .updates = 3}, std::vector<float>{1, 2});
  EXPECT_TRUE(record.holds());
  record.begin(7);
  record.begin(7);  // Another worker of it.
  EXPECT_FALSE(record.holds());
  EXPECT_TRUE(record.is_changed_by(7));
  EXPECT_FALSE(record.is_changed_by(6)) << "who is of an older group knows nothing of it";
  record.write({.step = 9, .updates = 8}, std::vector<float>{5, 6});
  EXPECT_TRUE(record.holds());
  EXPECT_FALSE(record.is_changed_by(7));
  const ModelRecord found(memory.bytes(), 2);  // By another process.
  EXPECT_TRUE(found.holds());
  EXPECT_EQ(found.age().step, 9);
  EXPECT_EQ(found.age().updates, 8);
  EXPECT_THAT(found.buffers(), ElementsAre(5, 6));
}

TEST(WorkLeftAfter, IsWhatWasLeftWhereTheCutIsTheSame) {
  tensor::TrainingState state;
  state.work = {.next = 15, .parts = 4, .again = {{.step = 2, .part = 1}}};
  state.step = gossip::whole_steps(state.work);
  EXPECT_EQ(state.step, 2);
  const cluster::WorkLeft work = work_left(state, 4);
  EXPECT_EQ(work.next, 15);
  EXPECT_THAT(work.again, ElementsAre(cluster::Claim{.step = 2, .part = 1}));
}

TEST(WorkLeftAfter, BeginsWithAWholeStepWhereTheCutIsAnother) {
  tensor::TrainingState state;
  state.work = {.next = 15, .parts = 4, .again = {{.step = 2, .part = 1}}};
  state.step = 2;
  const cluster::WorkLeft work = work_left(state, 3);
  EXPECT_EQ(work.next, 6);
  EXPECT_EQ(work.parts, 3);
  EXPECT_THAT(work.again, IsEmpty());
}

TEST(WorkLeftAfter, StepsMadeTogetherLeaveWholeSteps) {
  tensor::TrainingState state;
  state.step = 7;
  EXPECT_EQ(work_left(state, 2).next, 14);
  state.work = {.next = 6, .parts = 2};  // Of an earlier strategy.
  EXPECT_EQ(work_left(state, 2).next, 14);
}

TEST(OwnState, IsOnlyTakenForWhatItIs) {
  tensor::TrainingState state;
  const std::vector<float> velocity = {1, 2, 3};
  EXPECT_TRUE(own_floats(nullptr, kOwnVelocity).empty());
  EXPECT_TRUE(own_floats(&state, kOwnVelocity).empty());
  set_own(state, kOwnVelocity, {velocity});
  EXPECT_TRUE(own_floats(&state, kOuterSlots).empty());
  ASSERT_EQ(own_floats(&state, kOwnVelocity).size(), 1U);
  EXPECT_EQ(own_floats(&state, kOwnVelocity)[0], velocity);
  state.own = {.meaning = "of another strategy", .floats = {velocity}};
  EXPECT_TRUE(own_floats(&state, kOwnVelocity).empty());
}

}  // namespace
}  // namespace cohort::strategy
