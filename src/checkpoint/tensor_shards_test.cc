// Tensors of which several files have a part: any range is put together; holes, overlaps and files
// that disagree are refused.

#include "checkpoint/tensor_shards.h"

#include <numeric>

#include "base/fail.h"
#include "checkpoint/checkpoint_test_support.h"

namespace cohort::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kCount = 12;

std::vector<float> numbered(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// Parts of one tensor "w" of twelve values, each its own number.
class TensorShards : public testing::Test {
 protected:
  using Ranges = std::vector<ShardRange>;

  /// The checkpoint that tasks with these ranges leave.
  ShardedTensors saved(const std::vector<Ranges>& tasks) {
    std::vector<CheckpointContent::File> files;
    const std::vector<float> full = numbered(kCount);
    std::vector<std::vector<float>> held(tasks.size());
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      for (const ShardRange& range : tasks[task]) {
        held[task].insert(held[task].end(), full.begin() + range.begin, full.begin() + range.end);
      }
      const TensorShard shard{"w", {4, 3}, tasks[task], std::span<const float>(held[task])};
      files.push_back(shard_file(name_of_part(task), {&shard, 1}));
    }
    return open(files);
  }

  static std::string name_of_part(std::size_t task) {
    return "part-" + std::to_string(task) + ".safetensors";
  }

  ShardedTensors open(const std::vector<CheckpointContent::File>& files) {
    CheckpointContent content;
    content.files = files;
    content.state = "{}";
    const Checkpoint checkpoint(CheckpointFolder(temporary_.path() / "c").write(content));
    std::vector<std::string> names;
    for (const auto& file : files) names.push_back(file.name);
    return ShardedTensors(checkpoint, names);
  }

  /// A part whose header says this, with so many values.
  static CheckpointContent::File claiming(std::size_t task, const std::string& text,
                                          std::span<const float> values) {
    CheckpointContent::File file;
    file.name = name_of_part(task);
    file.tensors = {{"w", {static_cast<std::int64_t>(values.size())}, values}};
    file.metadata = {{"shard/w", text}};
    return file;
  }

  std::string error_of(const std::vector<CheckpointContent::File>& files) {
    try {
      open(files);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      return error.what();
    }
    return "nothing is wrong";
  }

  std::string error_of(const std::string& first, std::size_t count, const std::string& second = "",
                       std::size_t second_count = 0) {
    const auto values = numbered(64);
    std::vector files = {claiming(0, first, std::span(values).first(count))};
    if (!second.empty())
      files.push_back(claiming(1, second, std::span(values).first(second_count)));
    return error_of(files);
  }

  TemporaryFolder temporary_;
};

TEST_F(TensorShards, AnyRangeIsPutTogetherWhoeverHoldsIt) {
  const ShardedTensors tensors =
      saved({{{2, 5}, {9, 11}}, {}, {{0, 2}, {5, 6}}, {{6, 9}, {11, 12}}});
  EXPECT_THAT(tensors.names(), ElementsAre("w"));
  EXPECT_EQ(tensors.shape("w"), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(tensors.dtype("w"), SafetensorsDtype::f32);
  const std::vector<float> full = numbered(kCount);
  for (std::int64_t begin = 0; begin <= kCount; ++begin) {
    for (std::int64_t end = begin; end <= kCount; ++end) {
      std::vector<float> part(static_cast<std::size_t>(end - begin));
      tensors.read("w", {begin, end}, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), full.begin() + begin))
          << begin << " " << end;
    }
  }
}

TEST_F(TensorShards, IntegersAndDoublesToo) {
  const std::vector<std::int64_t> counts = {7, 8};
  const std::vector<double> sums = {0.5};
  const TensorShard shards[] = {{"n", {2}, {{0, 2}}, std::span<const std::int64_t>(counts)},
                                {"d", {}, {{0, 1}}, std::span<const double>(sums)}};
  const ShardedTensors tensors = open({shard_file("part-0.safetensors", shards)});
  std::vector<std::int64_t> n(2);
  std::vector<double> d(1);
  tensors.read("n", {0, 2}, n);
  tensors.read("d", {0, 1}, d);
  EXPECT_EQ(n, counts);
  EXPECT_EQ(d, sums);
  EXPECT_THROW(tensors.read("n", {0, 1}, d), Error) << "another type";
}

TEST_F(TensorShards, WhatIsAskedForMustBeThere) {
  const ShardedTensors tensors = saved({{{0, 12}}});
  std::vector<float> room(4);
  EXPECT_THROW(tensors.read("v", {0, 4}, room), Error);
  EXPECT_THROW(tensors.read("w", {0, 3}, room), Error);
  EXPECT_THROW(tensors.read("w", {9, 13}, room), Error);
  EXPECT_THROW(tensors.read("w", {-1, 3}, room), Error);
  EXPECT_THROW(tensors.shape("v"), Error);
}

TEST_F(TensorShards, AHoleIsRefused) {
  const std::string shape = R"({"shape": [12], "ranges": )";
  EXPECT_THAT(error_of(shape + "[[0, 5]]}", 5, shape + "[[6, 12]]}", 6),
              AllOf(HasSubstr("nobody has the values of \"w\" from 5 on"), HasSubstr("part-0")));
  EXPECT_THAT(error_of(shape + "[[0, 5]]}", 5), HasSubstr("from 5 on"));
  EXPECT_THAT(error_of(shape + "[[1, 12]]}", 11), HasSubstr("from 0 on"));
}

TEST_F(TensorShards, AnOverlapIsRefused) {
  const std::string shape = R"({"shape": [12], "ranges": )";
  EXPECT_THAT(error_of(shape + "[[0, 7]]}", 7, shape + "[[6, 12]]}", 6),
              AllOf(HasSubstr("part-1"), HasSubstr("some of which"), HasSubstr("part-0")));
  EXPECT_THAT(error_of(shape + "[[0, 7], [6, 12]]}", 13), HasSubstr("overlap"));
  EXPECT_THAT(error_of(shape + "[[6, 12], [0, 6]]}", 12), HasSubstr("do not ascend"));
}

TEST_F(TensorShards, ShapesThatDisagreeAreRefused) {
  EXPECT_THAT(error_of(R"({"shape": [12], "ranges": [[0, 6]]})", 6,
                       R"({"shape": [3, 4], "ranges": [[6, 12]]})", 6),
              AllOf(HasSubstr("[3, 4]"), HasSubstr("[12]"), HasSubstr("part-1")));
}

TEST_F(TensorShards, RangesOutsideAreRefused) {
  EXPECT_THAT(error_of(R"({"shape": [12], "ranges": [[6, 18]]})", 12), HasSubstr("but it has 12"));
  EXPECT_THAT(error_of(R"({"shape": [12], "ranges": [[9, 3]]})", 0), HasSubstr("9 to 3"));
  EXPECT_THAT(error_of(R"({"shape": [12], "ranges": [[0, 12]]})", 11), HasSubstr("12 values"));
}

TEST_F(TensorShards, NumbersThatCannotBeAreRefusedBeforeAnythingIsMade) {
  EXPECT_THAT(error_of(R"({"shape": [4000000000, 4000000000], "ranges": []})", 0),
              HasSubstr("cannot be"));
  EXPECT_THAT(error_of(R"({"shape": [500000000000000000], "ranges": [[0, 0]]})", 0),
              HasSubstr("from 0 on"));
  EXPECT_THAT(error_of(R"({"shape": [99999999999999999999], "ranges": []})", 0),
              HasSubstr("cannot be read"));
  EXPECT_THAT(error_of(R"({"shape": [-1], "ranges": []})", 0), HasSubstr("cannot be read"));
  for (const char* text :
       {"", "{}", "[]", R"({"shape": 3, "ranges": 3})", R"({"shape": [1], "ranges": [[0]]})",
        R"({"shape": [1], "ranges": 1})"}) {
    EXPECT_THAT(error_of(text, 1), HasSubstr("cannot be read")) << text;
  }
}

TEST_F(TensorShards, ADescriptionWithoutItsTensorIsRefused) {
  auto file = claiming(0, "{}", {});
  file.tensors.clear();
  EXPECT_THAT(error_of({file}), HasSubstr("described and not there"));
}

TEST_F(TensorShards, AWriterIsToldWhatItsShardsLack) {
  const auto values = numbered(3);
  const auto file_of = [&](std::vector<ShardRange> ranges) {
    const TensorShard shard{"w", {2, 2}, std::move(ranges), std::span(values)};
    return shard_file("part-0.safetensors", {&shard, 1});
  };
  EXPECT_NO_THROW(file_of({{0, 1}, {2, 4}}));
  EXPECT_THROW(file_of({{2, 5}}), Error);
  EXPECT_THROW(file_of({{2, 4}, {0, 1}}), Error);
}

}  // namespace
}  // namespace cohort::checkpoint
