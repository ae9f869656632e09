#include "bench/results.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "bench/timing.h"

/// Values of rounds that are made up, and the medians, ratios, table and JSON that must come of
/// them.

namespace cohort::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Metric kTime{"sum of 1 KiB", Unit::seconds};
const Metric kRate{"training", Unit::samples_per_second};

TEST(Median, IsTheMiddleValueOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({8, 1, 2, 100}), 5);
  EXPECT_THROW(median({}), std::logic_error);
}

TEST(Results, SpreadIsOverTheRoundsThatHaveAValue) {
  Results results;
  results.add(kTime, "us", 0, 3);
  results.add(kTime, "us", 2, 1);
  results.add(kTime, "us", 3, 2);
  const Spread spread = results.spread(kTime, "us");
  EXPECT_EQ(spread.median, 2);
  EXPECT_EQ(spread.lowest, 1);
  EXPECT_EQ(spread.highest, 3);
}

TEST(Results, RatioIsTheMedianOfTheRoundsRatiosAndAboveOneIsBetter) {
  Results results;
  // The machine gets slower: the ratio of medians would be 6 / 2 = 3.
  const double us[] = {1, 2, 10}, them[] = {6, 4, 20};
  for (int round = 0; round < 3; ++round) {
    results.add(kTime, "us", round, us[round]);
    results.add(kTime, "them", round, them[round]);
    results.add(kRate, "us", round, us[round]);
    results.add(kRate, "them", round, them[round]);
  }
  EXPECT_DOUBLE_EQ(results.ratio(kTime, "us", "them")->median, 2);
  EXPECT_DOUBLE_EQ(results.ratio(kTime, "us", "them")->highest, 6);
  EXPECT_DOUBLE_EQ(results.ratio(kRate, "us", "them")->median, 0.5);
}

TEST(Results, RatioNeedsARoundThatBothFinished) {
  Results results;
  results.add(kTime, "us", 0, 1);
  results.add(kTime, "them", 1, 1);
  EXPECT_FALSE(results.ratio(kTime, "us", "them"));
  EXPECT_FALSE(results.ratio(kTime, "us", "nobody"));
}

TEST(Results, MetricsAndContendersKeepTheirOrder) {
  Results results;
  results.add(kRate, "b", 0, 1);
  results.add(kTime, "z", 0, 1);
  results.add(kRate, "a", 0, 1);
  EXPECT_THAT(results.metrics(), ElementsAre(kRate, kTime));
  EXPECT_THAT(results.contenders(kRate), ElementsAre("b", "a"));
  EXPECT_THROW(results.spread(kTime, "a"), Error);
}

TEST(Results, JsonHasEveryRoundAndTheRatios) {
  Results results;
  results.add(kTime, "us", 0, 2);
  results.add(kTime, "us", 1, 2);
  results.add(kTime, "them", 1, 8);
  const auto json = results.to_json("us");
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["name"], kTime.name);
  EXPECT_EQ(json[0]["unit"], "seconds");
  const auto& contenders = json[0]["contenders"];
  EXPECT_FALSE(contenders[0].contains("ratio"));
  EXPECT_EQ(contenders[1]["rounds"], nlohmann::json({nullptr, 8.0}));
  EXPECT_EQ(contenders[1]["ratio"]["median"], 4);
}

TEST(Table, ValuesHaveThreeDigitsAndAUnitThatFits) {
  EXPECT_EQ(format_value(0.0572, Unit::seconds), "57.2 ms");
  EXPECT_EQ(format_value(3.2e-7, Unit::seconds), "0.32 µs");
  EXPECT_EQ(format_value(1.5, Unit::seconds), "1.50 s");
  EXPECT_EQ(format_value(13600, Unit::samples_per_second), "13.6 k/s");
  EXPECT_EQ(format_value(43.5, Unit::samples_per_second), "43.5 /s");
  EXPECT_EQ(format_value(251e6, Unit::bytes), "251 MB");
}

TEST(Table, HasALinePerContenderWithTheRatioOfTheOthersOnly) {
  Results results;
  results.add(kTime, "us", 0, 0.001);
  results.add(kTime, "them", 0, 0.0025);
  const std::string table = format_table(results, "us");
  EXPECT_THAT(table, HasSubstr(kTime.name));
  EXPECT_THAT(table, HasSubstr("2.50 ms..2.50 ms"));
  EXPECT_THAT(table, HasSubstr("2.50x"));
  EXPECT_THAT(table, Not(HasSubstr("1.00x")));
}

}  // namespace
}  // namespace cohort::bench
