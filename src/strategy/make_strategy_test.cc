// The strategies that can be made are those of the table that jobs are checked by.

#include <gmock/gmock.h>

#include "kinds/strategy_table.h"
#include "strategy/strategy.h"

namespace cohort::strategy {
namespace {

TEST(MakeStrategy, EveryKindOfTheTableHasAMaker) {
  EXPECT_EQ(made_strategies(), kinds::strategy_kinds());
}

}  // namespace
}  // namespace cohort::strategy
