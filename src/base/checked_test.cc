#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace cohort {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(Checked, ProductsAndSumsThatFitAreThemselves) {
  EXPECT_EQ(checked_product(std::int64_t{6}, std::int64_t{7}), 42);
  EXPECT_EQ(checked_sum(std::uint64_t{40}, std::uint64_t{1}, std::uint64_t{1}), 42u);
  EXPECT_EQ(checked_product(kMost, std::int64_t{1}), kMost);
  EXPECT_EQ(checked_product(std::span<const std::int64_t>()), 1);
}

TEST(Checked, WhatHasNoRoomIsNothing) {
  EXPECT_FALSE(checked_product(std::int64_t{1} << 32, std::int64_t{1} << 32));
  EXPECT_FALSE(checked_sum(kMost, std::int64_t{1}));
  EXPECT_FALSE(checked_sum(kMost, std::int64_t{1}, -kMost)) << "it comes back into range too late";
  EXPECT_FALSE(checked_product(std::uint64_t{1} << 63, std::uint64_t{2}));
}

TEST(Checked, AnythingTimesNothingIsNothing) {
  const std::vector<std::int64_t> shape = {kMost, kMost, 0};
  EXPECT_EQ(checked_product(std::span(shape)), 0);
}

}  // namespace
}  // namespace cohort
