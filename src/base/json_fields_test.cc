#include "base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.h"
#include "base/json_text.h"

namespace cohort {
namespace {

using testing::ElementsAre;

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
