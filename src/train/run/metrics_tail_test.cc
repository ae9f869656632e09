#include "train/run/metrics_tail.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/files.h"
#include "train/loop/chief_log.h"

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MetricsTailTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "metrics.jsonl"; }

  static std::string line(std::int64_t step, const std::string& more = "") {
    return fmt::format("{{\"step\": {}, \"loss\": 1{}, \"lr\": 0.1}}\n", step, more);
  }

  void append(const std::string& text) const {
    const UniqueFd open = open_to_write(file(), Existing::append);
    write_all(open.get(), text, file());
  }

  std::vector<std::int64_t> told() {
    std::vector<std::int64_t> steps;
    tail_.read(folder_.path(), [&](const StepReport& step) { steps.push_back(step.step); });
    return steps;
  }

  TemporaryFolder folder_;
  MetricsTail tail_;
};

TEST_F(MetricsTailTest, TellsWholeLinesOfStepsOnce) {
  EXPECT_THAT(told(), IsEmpty());
  append(line(1) + "{\"step\": 1, \"validation_loss\": 2}\n" + line(2).substr(0, 9));
  EXPECT_THAT(told(), ElementsAre(1));
  append(line(2).substr(9) + line(3));
  EXPECT_THAT(told(), ElementsAre(2, 3));
  EXPECT_THAT(told(), IsEmpty());
}

// A new chief cuts the file and soon has written more than there was.
TEST_F(MetricsTailTest, ACutFileThatHasGrownAgainIsReadFromItsBeginning) {
  append(line(1) + line(2) + line(3) + line(4));
  EXPECT_THAT(told(), ElementsAre(1, 2, 3, 4));
  cut_metrics(file(), 2);
  append(line(3, "23456") + line(4, "234567") + line(5, "2345") + line(6));
  EXPECT_THAT(told(), ElementsAre(5, 6));
}

// The inode of a file that is gone may be that of the next one.
TEST_F(MetricsTailTest, AnotherFileWithTheSameInodeIsReadFromItsBeginning) {
  append(line(1) + line(2) + line(3) + line(4));
  EXPECT_THAT(told(), ElementsAre(1, 2, 3, 4));
  std::filesystem::resize_file(file(), 2 * line(1).size());
  append(line(5, std::string(3 * line(1).size(), '2')) + line(6));
  EXPECT_THAT(told(), ElementsAre(5, 6));
}

TEST_F(MetricsTailTest, StepsOfBeforeAreNotTold) {
  append(line(1) + line(2) + line(3));
  tail_.begin_after(2);
  EXPECT_THAT(told(), ElementsAre(3));
}

}  // namespace
}  // namespace cohort
