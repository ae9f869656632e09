// Job files that were not written to train anything: numbers beyond any range, names that lead
// elsewhere, nesting without end, a megabyte where a word should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "base/mutate_test_support.h"
#include "job/job_file.h"
#include "job/key_table.h"

namespace cohort::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class HostileJob : public testing::Test {
 protected:
  /// What loading a file of this content is refused with; empty where it is not.
  std::string refusal(const std::string& content, const std::vector<std::string>& overrides = {}) {
    std::filesystem::remove(file_);
    std::ofstream(file_, std::ios::binary) << content;
    try {
      load_job(file_, overrides);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "job.toml";
};

template <class Owner>
bool is_number(const Key<Owner>& key) {
  return key.path != "job.seed" && type_name(key).find("number") != std::string::npos;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// Without limits at both ends some sum or product of it has no room in a number.
template <class Owner>
void expect_ranges(const std::vector<Key<Owner>>& keys) {
  for (const Key<Owner>& key : keys) {
    if (!is_number(key)) continue;
    EXPECT_TRUE(std::isfinite(key.limits.least)) << key.path;
    EXPECT_TRUE(std::isfinite(key.limits.most)) << key.path;
  }
}

TEST_F(HostileJob, EveryNumberHasARange) {
  expect_ranges(job_keys());
  expect_ranges(layer_option_keys());
}

TEST_F(HostileJob, ANumberBeyondItsRangeIsRefusedByNameAndRange) {
  for (const Key<Job>& key : job_keys()) {
    if (!is_number(key)) continue;
    const bool list = type_name(key).find("list") != std::string::npos;
    const bool whole = type_name(key).find("whole") != std::string::npos;
    for (const std::string sign : {"", "-"}) {
      const std::string number = sign + (whole ? "9223372036854775807" : "1e300");
      const std::string value = list ? "[" + number + "]" : number;
      EXPECT_THAT(refusal("", {key.path + "=" + value}),
                  AllOf(HasSubstr(key.path + " must be from "), HasSubstr(" to ")));
    }
  }
}

TEST_F(HostileJob, AWholeNumberThatADoubleHoldsOnlyAboutIsStillANumber) {
  EXPECT_THAT(refusal("[train]\noptimizer.momentum = 9223372036854775807\n"),
              HasSubstr("train.optimizer.momentum must be from 0 to 1"));
  EXPECT_EQ(refusal("[train]\noptimizer.lr = 9007199254740993\n"), "");
}

TEST_F(HostileJob, AListHasAnEnd) {
  EXPECT_THAT(refusal("[model]\nhidden = [" + repeated("1,", 10'001) + "]"),
              HasSubstr("model.hidden must be a list of at most 10000"));
  EXPECT_THAT(refusal("[model]\nlayers = [" + repeated("{type='relu'},", 10'001) + "]"),
              HasSubstr("model.layers must be a list of at most 10000"));
}

TEST_F(HostileJob, ANameThatWouldLeadElsewhereIsRefused) {
  for (const std::string name : {"../../x", "/tmp/x", "a/b", "..", ".", ".hidden", "", "a\\nb",
                                 "a\\u001b[2J", "a\\u007f", "a\\u0000b"}) {
    EXPECT_THAT(refusal("[job]\nname = \"" + name + "\"\n"), HasSubstr("job.name must be "))
        << name;
  }
  EXPECT_THAT(refusal("[job]\nname = \"" + std::string(101, 'n') + "\"\n"),
              HasSubstr("job.name must be 1 to 100 characters"));
  EXPECT_EQ(refusal("[job]\nname = \"a..b c-é\"\n"), "");
}

TEST_F(HostileJob, AStringNoPathCanBeIsRefused) {
  EXPECT_THAT(refusal("[data]\npath = \"" + std::string(5000, 'p') + "\"\n"),
              HasSubstr("data.path must be at most 4000 characters"));
  EXPECT_THAT(refusal("[data]\npath = \"a\\u0000b\"\n"), HasSubstr("none of them NUL"));
}

TEST_F(HostileJob, WhatNestsDeepIsRefusedBeforeItIsParsed) {
  constexpr int kTimes = 100'000;
  for (const std::string& text :
       {repeated("a.", kTimes) + "a = 1", "[" + repeated("a.", kTimes) + "a]",
        repeated("\"a\" . ", kTimes) + "a = 1", "a = {" + repeated("a.", kTimes) + "a = 1}",
        "[[" + repeated("'.'.", kTimes) + "a]]",
        "a = {b = \"\"\"c\"\"\"\", " + repeated("a.", kTimes) + "a = 1}",
        "a = {b = '''c''''', " + repeated("a.", kTimes) + "a = 1}", "a = " + repeated("[", kTimes),
        "a = " + repeated("{a = ", kTimes), "a = " + repeated("[{a = ", kTimes)}) {
    EXPECT_THAT(refusal("\n" + text + "\n"), HasSubstr("job.toml:2: this is not TOML: "));
    const std::string overridden = refusal("", {"model.layers=" + text});
    EXPECT_THAT(overridden, HasSubstr("model.layers must be a list of layers"));
    EXPECT_LT(overridden.size(), 1000u);
  }
}

TEST_F(HostileJob, DotsAndBracketsInStringsAndCommentsNestNothing) {
  const std::string many = repeated(".[{", 300);
  EXPECT_EQ(refusal("[data] # " + many + "\npath = \"" + many + "\\\"" + many + "\"\n" +
                    "validation_path = '" + many + "\\'\n" + "target = '''" + many + "\n''" + many +
                    "'''\n"),
            "");
  EXPECT_EQ(
      refusal("[model]\nlayers = [" + repeated(" { type = \"dropout\", p = 0.5 },", 200) + "]\n"),
      "");
}

TEST_F(HostileJob, OnlyAPieceOfWhatIsWrongIsSaid) {
  const std::string many(1'000'000, 'k');
  for (const std::string& text :
       {many + " = 1", "[" + many + "]", "[train]\nepochs = \"" + many + "\"",
        "[job]\nname = \"" + many + "\"", "[strategy]\nkind = \"" + many + "\"",
        "[model]\nlayers = [{type = \"" + many + "\"}]",
        "[model]\nlayers = [{type = \"relu\", " + many + " = 1}]", many}) {
    const std::string said = refusal(text);
    EXPECT_NE(said, "");
    EXPECT_LT(said.size(), 1000u);
  }
  for (const std::string& text : {"train.epochs=" + many, many, many + "=1"}) {
    EXPECT_LT(refusal("", {text}).size(), 1000u);
  }
}

TEST_F(HostileJob, AFileThatNobodyWroteByHandIsNotRead) {
  EXPECT_THAT(refusal(std::string(5 << 20, '\n')), HasSubstr("at most 4194304 are read"));
}

TEST_F(HostileJob, AnyInjuredFileIsReadOrRefused) {
  const std::string whole = R"([job]
name = "a"
seed = 7
[model]
hidden = [64, 32]
layers = [ { type = "linear", out = 3 },
           { type = "residual", layers = [ { type = "dropout", p = 0.5 } ] } ]
[train]
optimizer = { kind = "sgd", lr = 0.1 }
schedule.kind = 'cosine' # words
)";
  ASSERT_EQ(refusal(whole), "");
  Random random(16);
  for (int i = 0; i < 2000; ++i) refusal(mutated(whole, random, "[]{}=.,\"'#\\\n"));
}

}  // namespace
}  // namespace cohort::job
