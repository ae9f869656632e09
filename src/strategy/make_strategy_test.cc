#include <gmock/gmock.h>

#include "kinds/strategy_table.h"
#include "strategy/strategy.h"

namespace cohort {
namespace {

TEST(MakeStrategy, EveryKindOfTheTableHasAMaker) {
  EXPECT_EQ(made_strategies(), strategy_kinds());
}

TEST(MakeStrategy, PacesAreWhatTheTableSays) {
  for (const StrategyWay& way : strategy_ways()) {
    const Pace pace = pace_of(options_of(way));
    EXPECT_EQ(pace.lockstep, way.traits.lockstep) << way.name;
    EXPECT_EQ(pace.hands_out_work, way.traits.hands_out_work) << way.name;
  }
}

}  // namespace
}  // namespace cohort
