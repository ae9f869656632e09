#include "base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace cohort {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(JsonText, DepthIsBounded) {
  EXPECT_TRUE(parse_json(nested(kDeepestJson)).is_array());
  EXPECT_TRUE(parse_json(nested(kDeepestJson + 1)).is_discarded());
  EXPECT_TRUE(parse_json(nested(100'000)).is_discarded());
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>(nested(100'000)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(100'000, '{')).is_discarded());
}

TEST(JsonText, BracketsInStringsDoNotCount) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("\"" + brackets + "\""), brackets);
  EXPECT_EQ(parse_json("\"\\\"" + brackets + "\""), "\"" + brackets);
  EXPECT_FALSE(nests_at_most("\"\\\\\"" + brackets, 10)) << "the string has ended before them";
}

TEST(JsonText, WhatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "{\"a\":}", "nan", "\"\\", "{} {}", "\xff"}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  }
}

std::string refusal(const char* text) {
  try {
    integer_at(parse_json(text), "step", 0, 100);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(JsonText, WholeNumbersKeepToTheirRange) {
  EXPECT_EQ(integer_at(parse_json(R"({"step": 42})"), "step", 0, 100), 42);
  EXPECT_EQ(integer_at(parse_json(R"({"step": 9223372036854775807})"), "step", 0, kMost), kMost);
  for (const char* text :
       {R"({"step": 101})", R"({"step": -1})", R"({"step": 9223372036854775807})",
        R"({"step": 18446744073709551615})", R"({"step": 1e300})", R"({"step": 1.0})",
        R"({"step": true})", R"({"step": "7"})", R"({"step": null})", R"({"step": [7]})"}) {
    EXPECT_THAT(refusal(text), HasSubstr("its \"step\" is ")) << text;
  }
  for (const char* text : {"{}", "[1]", "7", "nonsense"}) {
    EXPECT_THAT(refusal(text), HasSubstr("no \"step\"")) << text;
  }
}

}  // namespace
}  // namespace cohort
