#include "base/parse_integer.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

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
