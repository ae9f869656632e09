// state.json to the letter, and what is refused of it.

#include "train/state/checkpoint_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/mutate_test_support.h"

namespace cohort::training {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string whole_text() {
  return to_json(CheckpointText{.step = 41,
                                .cursor = {.epoch = 8, .offset = 16},
                                .work = {.next = 83, .parts = 2, .again = {{41, 0}}},
                                .updates = 40,
                                .seed = 0xfedcba9876543210u,
                                .batch = 16,
                                .samples = 70,
                                .optimizer = "adam",
                                .slots = {"m", "v"},
                                .strategy = "gossip",
                                .compression = "none",
                                .workers = 2});
}

TEST(CheckpointText, ComesBack) {
  const CheckpointText text = parse_checkpoint_text(whole_text(), "state.json");
  EXPECT_EQ(to_json(text), whole_text());
  EXPECT_EQ(text.seed, 0xfedcba9876543210u);
}

/// What the text is refused with after a change; empty where it is not.
std::string refusal(const std::function<void(Json&)>& change) {
  Json json = Json::parse(whole_text());
  change(json);
  try {
    parse_checkpoint_text(json.dump(), "state.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 500u);
    return error.what();
  }
  return "";
}

TEST(CheckpointText, NumbersThatNoTrainingHasAreRefused) {
  const Json values[] = {-1,      9223372036854775807, 18446744073709551615u, 1e300, 7.5, "7", true,
                         nullptr, Json::array()};
  for (const char* key : {"step", "epoch", "updates", "workers"}) {
    for (const Json& value : values) {
      EXPECT_THAT(refusal([&](Json& json) { json[key] = value; }), HasSubstr(key)) << value;
    }
    EXPECT_THAT(refusal([&](Json& json) { json.erase(key); }), HasSubstr(key));
  }
  for (const char* key : {"batch", "samples", "offset"}) {
    EXPECT_THAT(refusal([&](Json& json) { json[key] = -1; }), HasSubstr(key));
  }
  EXPECT_THAT(refusal([](Json& json) { json["offset"] = 1000000000; }), HasSubstr("offset"));
}

TEST(CheckpointText, WorkThatCannotBeLeftIsRefused) {
  for (const std::int64_t parts :
       {std::int64_t{0}, std::int64_t{-3}, std::int64_t{5000}, std::int64_t{9223372036854775807}}) {
    EXPECT_THAT(refusal([&](Json& json) { json["work"]["parts"] = parts; }), HasSubstr("parts"));
  }
  for (const Json& claim : {Json{0, 2}, Json{0, -1}, Json{-1, 0}, Json{41, 1}, Json{1000000, 0},
                            Json{9223372036854775807, 0}, Json::array(), Json("x"), Json{1}}) {
    EXPECT_NE(refusal([&](Json& json) { json["work"]["again"] = {claim}; }), "") << claim;
  }
  const Json twice = {{40, 0}, {40, 1}, {40, 0}};
  EXPECT_THAT(refusal([&](Json& json) { json["work"]["again"] = twice; }), HasSubstr("twice"));
  EXPECT_NE(refusal([](Json& json) { json["work"]["next"] = -1; }), "");
  EXPECT_NE(refusal([](Json& json) { json["work"] = 3; }), "");
}

TEST(CheckpointText, WhatIsNoTextIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string(100'000, '['),
        std::string("{\"format\": \"x\"}"), std::string("{\"format\": -1}")}) {
    EXPECT_THROW(parse_checkpoint_text(text, "state.json"), Error);
  }
  try {
    parse_checkpoint_text("{\"format\": 3}", "state.json");
    FAIL() << "a later format was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST(CheckpointText, AnyInjuredTextIsReadOrRefused) {
  Random random(16);
  for (int i = 0; i < 3000; ++i) {
    try {
      parse_checkpoint_text(mutated(whole_text(), random, "{}[]\",:x0"), "state.json");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("state.json"));
    }
  }
}

}  // namespace
}  // namespace cohort::training
