// Proves that JSON of others is taken as it is or refused in one sentence: depth before parsing,
// numbers by their range, fields by their whole path, texts of any bytes.

#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/fail.h"

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

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
  EXPECT_EQ(integer_at(parse_json(R"({"step": 9223372036854775807})"), "step", 0, kLargest),
            kLargest);
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

template <class Call>
std::string words_of_refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    return error.what();
  }
  return "nothing";
}

TEST(JsonFields, GivesWhatIsThere) {
  const nlohmann::json json = parse_json(
      R"({"a": {"n": 3, "x": 1.5, "t": "word", "l": [1, 2], "f": true, "o": [{"k": 1}]}})");
  const JsonFields fields = JsonFields(json, "f.json").object("a");
  EXPECT_EQ(fields.integer("n", 0, 3), 3);
  EXPECT_EQ(fields.number("x"), 1.5);
  EXPECT_EQ(fields.text("t"), "word");
  EXPECT_TRUE(fields.flag("f"));
  EXPECT_THAT(fields.integers("l", 0, 9, 2), ElementsAre(1, 2));
  EXPECT_THAT(fields.numbers("l"), ElementsAre(1, 2));
  EXPECT_EQ(fields.objects("o", 1)[0].integer("k", 1, 1), 1);
  EXPECT_FALSE(fields.has("none"));
}

TEST(JsonFields, NamesWhatIsWrongByItsWholePath) {
  const nlohmann::json json =
      parse_json(R"({"a": {"n": 18446744073709551615, "t": 1, "l": [1, "x"], "o": [{}, 7]}})");
  const JsonFields fields = JsonFields(json, "f.json").object("a");
  EXPECT_EQ(words_of_refusal([&] { fields.integer("n", 0, 9); }),
            "f.json: a.n is 18446744073709551615, not a whole number from 0 to 9");
  EXPECT_EQ(words_of_refusal([&] { fields.integer("m", 0, 9); }), "f.json: a.m is missing");
  EXPECT_EQ(words_of_refusal([&] { fields.text("t"); }), "f.json: a.t is 1, not a text");
  EXPECT_EQ(words_of_refusal([&] { fields.flag("t"); }), "f.json: a.t is 1, not true or false");
  EXPECT_EQ(words_of_refusal([&] { fields.integers("l", 0, 9, 2); }),
            "f.json: a.l has \"x\", not a whole number from 0 to 9");
  EXPECT_EQ(words_of_refusal([&] { fields.integers("l", 0, 9, 1); }),
            "f.json: a.l has 2 entries, more than the 1 there can be");
  EXPECT_EQ(words_of_refusal([&] { fields.objects("o", 2); }),
            "f.json: a.o[2] is not a JSON object");
  EXPECT_EQ(words_of_refusal([&] { fields.object("t"); }), "f.json: a.t is not a JSON object");
}

TEST(JsonFields, TextsNeedNotBeUtf8) {
  const std::vector<std::string> texts = {"plain", "\xc3\xa9", "\xe9", std::string("\0x", 2), ""};
  const nlohmann::ordered_json written = {{"t", text_json(texts)}, {"one", text_json(texts[2])}};
  const nlohmann::json json = parse_json(written.dump());
  EXPECT_EQ(JsonFields(json, "f").texts("t"), texts);
  EXPECT_EQ(JsonFields(json, "f").any_text("one"), texts[2]);
  const nlohmann::json wrong = parse_json(R"({"t": ["a", [1, 300]]})");
  EXPECT_EQ(words_of_refusal([&] { JsonFields(wrong, "f").texts("t"); }),
            "f: t has [1,300], not a text");
}

}  // namespace
}  // namespace cohort
