// Proves that files and options nobody would write by accident are refused with a sentence, in
// little time and memory: sizes that overflow, lines without an end, devices, and files with random
// injuries. Data files and options that ask for more than they are worth: sizes that overflow, a
// table of gigabytes from twenty bytes, errors as long as the file, what is no file at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "base/fail.h"
#include "base/files.h"
#include "base/mutate_test_support.h"
#include "data/load_data.h"
#include "data/sampler.h"
#include "data/sources/mnist_files.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class HostileData : public testing::Test {
 protected:
  std::string write(const std::string& content) {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << content;
    return path_.string();
  }

  /// What loading is refused with; empty where it is not.
  std::string refusal(const DataOptions& options) {
    try {
      load_data(options, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::string refusal(const std::string& kind, const std::string& content) {
    DataOptions options;
    options.kind = kind;
    options.context = 3;
    options.path = write(content);
    return refusal(options);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "data";
};

TEST_F(HostileData, GeneratedSizesThatOverflowAreRefused) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 32;
  struct Sizes {
    const char* task;
    std::int64_t samples, features, classes;
  };
  for (const Sizes& sizes :
       {Sizes{"blobs", 10, kHuge, kHuge}, Sizes{"blobs", kHuge, kHuge, 2},
        Sizes{"blobs", kHuge << 29, 4, 2}, Sizes{"blobs", 10, kHuge << 29, 2},
        Sizes{"regression", kHuge, kHuge, 0}, Sizes{"regression", 10, kHuge << 29, 0}}) {
    DataOptions options;
    options.kind = "generated";
    options.task = sizes.task;
    options.samples = sizes.samples;
    options.features = sizes.features;
    options.classes = sizes.classes;
    EXPECT_NE(refusal(options), "") << sizes.task << " " << sizes.samples;
  }
}

TEST_F(HostileData, SamplesThatDoNotFitIntoMemoryAreRefused) {
  DataOptions options;
  options.kind = "generated";
  for (const char* task : {"digits", "blobs", "regression"}) {
    options.task = task;
    options.samples = std::int64_t{1} << 50;
    EXPECT_THAT(refusal(options), HasSubstr("memory")) << task;
  }
}

TEST_F(HostileData, AFewBytesDoNotMakeATableOfGigabytes) {
  EXPECT_THAT(refusal("libsvm", "1 4294967295:1\n2 1:1\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("4294967295"), HasSubstr("too large")));
  EXPECT_THAT(refusal("libsvm", "1 1:1\n2 9223372036854775807:1\n"), HasSubstr("too large"));
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += fmt::format("{} 16777216:1\n", i % 2);
  EXPECT_THAT(refusal("libsvm", rows),
              AllOf(HasSubstr("out of proportion"), HasSubstr("data.features = 16777216")));
}

TEST_F(HostileData, AnEmptyFieldTakesMemoryTooAndThereAreOnlySoMany) {
  EXPECT_THAT(refusal("csv", "a,b\n1," + std::string(1 << 24, ',') + "\n"),
              HasSubstr("line 2: there are more than 16777216 fields"));
}

TEST_F(HostileData, ATableThatTheJobAsksForMayBeLarge) {
  DataOptions options;
  options.kind = "libsvm";
  options.features = 1000;
  options.path = write("1 1:1\n2 1000:1\n");
  EXPECT_EQ(refusal(options), "");
}

TEST_F(HostileData, OnlyAPieceOfALongFieldIsSaid) {
  const std::string many(5'000'000, 'f');
  for (const auto& [kind, text] :
       {std::pair{"csv", "a,b\n1,x\n" + many + ",y\n"},
        std::pair{"csv", "a,b\n\"" + many + "\",y\n"}, std::pair{"csv", many + ",b\nq,x\n"},
        std::pair{"csv", many + ",b\n1,\n"}, std::pair{"libsvm", "1 " + many + "\n"},
        std::pair{"libsvm", many + " 1:1\n"},
        std::pair{"csv", "a,b\n1," + many + "\n2," + many + "\n"}}) {
    const std::string said = refusal(kind, text);
    EXPECT_NE(said, "");
    EXPECT_LT(said.size(), 1000u);
  }
  DataOptions options;
  options.kind = "csv";
  options.target = "c";
  options.path = write(many + ",b\n1,2\n");
  EXPECT_LT(refusal(options).size(), 1000u);
}

TEST_F(HostileData, ANumberThatNoFloatHoldsIsNone) {
  EXPECT_THAT(refusal("csv", "a,b\n1e300,x\n2,y\n"), HasSubstr("\"1e300\" is not a number"));
  EXPECT_THAT(refusal("libsvm", "1 1:1e39\n2 1:1\n"), HasSubstr("index:value"));
}

TEST_F(HostileData, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  DataOptions options;
  for (const char* kind : {"csv", "libsvm", "text"}) {
    options.kind = kind;
    std::filesystem::remove(path_);
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    options.path = path_.string();
    EXPECT_THAT(refusal(options), HasSubstr("not a regular file")) << kind;
    options.path = "/dev/zero";
    EXPECT_THAT(refusal(options), HasSubstr("not a regular file")) << kind;
  }
  EXPECT_THROW(read_idx(path_, 1), Error);
}

TEST_F(HostileData, AHeaderOfImagesThatOverflowsIsTruncated) {
  const std::string huge("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  try {
    read_idx(write(huge), 3);
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("far more"));
  }
}

TEST_F(HostileData, AnyInjuredFileIsReadOrRefused) {
  const std::pair<const char*, std::string> wholes[] = {
      {"csv", "a,b,c\n1,2.5,x\n-3,4e2,y\n\"7\",8,\"x\"\n5,6,y\n"},
      {"libsvm", "1 1:0.5 3:2\n2 2:-1\n# words\n1 1:7\n2 3:1e2\n"},
      {"text", "some words, and some more words of the same kind\n"}};
  Random random(16);
  for (const auto& [kind, whole] : wholes) {
    ASSERT_EQ(refusal(kind, whole), "") << kind;
    for (int i = 0; i < 700; ++i) refusal(kind, mutated(whole, random, ",\"\n:#. \r"));
  }
}

TEST(Sampler, StepsOfAnEpochDoNotOverflow) {
  EXPECT_EQ(steps_per_epoch(10, 3), 4);
  EXPECT_EQ(steps_per_epoch(9, 3), 3);
  EXPECT_EQ(steps_per_epoch(10, std::numeric_limits<std::int64_t>::max()), 1);
  EXPECT_EQ(cursor_after(5, 10, std::numeric_limits<std::int64_t>::max()).epoch, 5);
}

}  // namespace
}  // namespace cohort::data
