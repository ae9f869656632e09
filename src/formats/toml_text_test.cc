// TOML becomes tables, or is refused with file and line; what nests without end before it is parsed.

#include "formats/toml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.h"
#include "base/mutate_test_support.h"

namespace cohort::formats {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(TomlText, BecomesTables) {
  const toml::table table = parse_toml("[train]\nbatch = 12\nlayers = [{type='relu'}]\n", "f");
  EXPECT_EQ(table["train"]["batch"].value_or(0), 12);
  EXPECT_EQ(description_of(*table["train"]["batch"].node()), "12");
  EXPECT_EQ(description_of(*table.get("train")), "a table");
}

TEST(TomlText, IsRefusedWithFileAndLine) {
  EXPECT_THAT([] { parse_toml("a = 1\nb = \n", "job.toml"); },
              ThrowsMessage<Error>(HasSubstr("job.toml:2: this is not TOML: ")));
}

TEST(TomlText, WhatNestsWithoutEndIsRefusedBeforeItIsParsed) {
  for (const std::string& deep :
       {"a = " + repeated("[", 100'000), repeated("a.", 100'000) + "b = 1",
        "a = " + repeated("{a=", 100'000), repeated("[", 100'000),
        "# ]]]\nb = ''']]]'''\na = " + repeated("[", 100'000)}) {
    EXPECT_THAT([&] { parse_toml(deep, "f"); },
                ThrowsMessage<Error>(
                    testing::AnyOf(HasSubstr("nests too deep"), HasSubstr("too many parts"))));
  }
}

TEST(TomlText, AnyInjuredTextIsReadOrRefused) {
  Random random(11);
  const std::string good =
      "[model]\nlayers = [ {type=\"conv2d\", out=32}, {type='relu'} ] # words\n"
      "[train]\noptimizer = { kind = \"sgd\", lr = 0.1 }\n[[a.b]]\nc = \"\"\"x\n\"\"\"\n";
  for (int i = 0; i < 3000; ++i) {
    try {
      for (const auto& [key, node] : parse_toml(mutated(good, random, "[]{}.\"'#=\n\\"), "f")) {
        description_of(node);
      }
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("this is not TOML"));
    }
  }
}

}  // namespace
}  // namespace cohort::formats
