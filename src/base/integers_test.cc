// Proves that numbers of others are taken whole or not at all, at the edges of their types too.

#include "base/integers.h"

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

TEST(ParseInteger, TakesAllOfTheTextOrNothing) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  for (const char* text : {"", " 1", "1 ", "12abc", "0x10", "1e3", "9223372036854775808", "+"}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
}

TEST(ParseInteger, KeepsToItsRange) {
  EXPECT_EQ(parse_integer("65535", 1, 65535), 65535);
  EXPECT_FALSE(parse_integer("65536", 1, 65535));
  EXPECT_FALSE(parse_integer("0", 1, 65535));
}

}  // namespace
}  // namespace cohort
