#include "strategy/allreduce/model_record.h"

#include <gmock/gmock.h>

#include "os/private_memory.h"

namespace cohort {
namespace {

using testing::ElementsAre;

TEST(ModelRecord, HoldsUntilAGroupBeginsAndFromTheNextWritingOn) {
  const PrivateMemory memory(ModelRecord::bytes_needed(2));
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

}  // namespace
}  // namespace cohort
