#include "launch/slow_workers.h"

#include <gmock/gmock.h>

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

TEST(SlowWorkers, AreThoseOfTwiceTheMedian) {
  EXPECT_THAT(slow_workers(std::vector{0.01, 0.011, 0.04, 0.009}),
              ElementsAre(Field(&SlowWorker::rank, 2)));
  EXPECT_THAT(slow_workers(std::vector{0.01, 0.019, 0.012}), IsEmpty());
}

TEST(SlowWorkers, OneOfTwoCanBeSlow) {
  EXPECT_THAT(slow_workers(std::vector{0.04, 0.01}), ElementsAre(Field(&SlowWorker::rank, 0)));
}

TEST(SlowWorkers, NobodyIsComparedWithWhatIsNotKnown) {
  EXPECT_THAT(slow_workers(std::vector{0.04, 0.0}), IsEmpty());
  EXPECT_THAT(slow_workers(std::vector{0.01, 0.0, 0.05}), ElementsAre(Field(&SlowWorker::rank, 2)));
}

TEST(SlowWorkers, AreNamedWithBothTimes) {
  EXPECT_EQ(describe(SlowWorker{3, 0.0412, 0.01}),
            "worker 3 is slow: 41.2 ms for a step, the median is 10.0 ms");
}

}  // namespace
}  // namespace cohort
