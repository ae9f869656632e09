// What is written is read, to the byte; every file that is not sound is refused with a sentence
// that names it, before memory is taken for what it claims.

#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/fail.h"
#include "base/files.h"
#include "checkpoint/checkpoint_test_support.h"

namespace cohort::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A file as the format's description has it, from a header and the bytes after it.
std::string file_of(const std::string& header, const std::string& values) {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + values;
}

class Safetensors : public testing::Test {
 protected:
  SafetensorsFile read_bytes(const std::string& bytes) {
    // Some file systems write a file to the disk when it is truncated, but not when it is new.
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_safetensors(path_);
  }

  void expect_corrupt(const std::string& bytes, const std::string& words) {
    const auto error = error_of([&] { read_bytes(bytes); });
    ASSERT_TRUE(error) << "was read, though wrong: " << words;
    EXPECT_EQ(error->code(), ErrorCode::corrupt) << error->what();
    EXPECT_THAT(error->what(), HasSubstr(path_.string()));
    EXPECT_THAT(error->what(), HasSubstr(words));
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "model.safetensors";
};

const std::vector<float> kWeights{1, -2, 3.5, 0, 1e-30f, 6};
const std::vector<float> kScalar{42};
const std::vector<std::int64_t> kCount{-1, 1'000'000'000'000};
const std::vector<double> kPrecise{0.1, -1e300};

std::vector<TensorView> some_tensors() {
  return {{"layer.weight", {2, 3}, std::span(kWeights)},
          {"scalar", {}, std::span(kScalar)},
          {"seen", {2}, std::span(kCount)},
          {"precise", {2}, std::span(kPrecise)},
          {"none", {0, 4}, std::span<const float>()}};
}

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  write_safetensors(path_, some_tensors(), {{"step", "120"}, {"name", "ä \"quoted\""}});
  const SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_THAT(file.floats("layer.weight"), testing::ElementsAreArray(kWeights));
  EXPECT_THAT(file.tensor("layer.weight").shape, ElementsAre(2, 3));
  EXPECT_THAT(file.floats("scalar"), ElementsAre(42));
  EXPECT_THAT(file.tensor("scalar").shape, IsEmpty());
  EXPECT_EQ(file.integers("seen"), kCount);
  EXPECT_EQ(file.doubles("precise"), kPrecise);
  EXPECT_THAT(file.floats("none"), IsEmpty());
  EXPECT_THAT(file.tensor("none").shape, ElementsAre(0, 4));
  EXPECT_EQ(file.metadata().at("step"), "120");
  EXPECT_EQ(file.metadata().at("name"), "ä \"quoted\"");
}

TEST_F(Safetensors, AFileWithoutTensorsIsAFile) {
  write_safetensors(path_, {});
  EXPECT_THAT(read_safetensors(path_).tensors(), IsEmpty());
}

TEST_F(Safetensors, TheBytesAreThoseOfTheFormat) {
  const std::vector<float> one{1};
  write_safetensors(path_, std::vector<TensorView>{{"a", {1}, std::span(one)}});
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  while (header.size() % 8 != 0) header += ' ';
  EXPECT_EQ(read_file(path_), file_of(header, std::string("\0\0\x80\x3f", 4)));
}

TEST_F(Safetensors, TheSameTensorsGiveTheSameBytes) {
  write_safetensors(path_, some_tensors(), {{"b", "2"}, {"a", "1"}});
  const std::string first = read_file(path_);
  write_safetensors(path_, some_tensors(), {{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(read_file(path_), first);
}

TEST_F(Safetensors, WhatCannotBeWrittenIsRefusedAndLeavesNothing) {
  const std::vector<std::vector<TensorView>> wrong{
      {{"a", {2}, std::span(kScalar)}},
      {{"a", {}, std::span(kScalar)}, {"a", {}, std::span(kScalar)}},
      {{"__metadata__", {}, std::span(kScalar)}},
      {{"\xff", {}, std::span(kScalar)}},
  };
  for (const auto& tensors : wrong) {
    const auto error = error_of([&] { write_safetensors(path_, tensors); });
    ASSERT_TRUE(error) << tensors[0].name;
    EXPECT_EQ(error->code(), ErrorCode::invalid) << error->what();
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }
}

TEST_F(Safetensors, AMissingFileOrTensorIsNotFound) {
  const auto no_file = error_of([&] { read_safetensors(path_); });
  ASSERT_TRUE(no_file);
  EXPECT_EQ(no_file->code(), ErrorCode::not_found);

  write_safetensors(path_, some_tensors());
  const SafetensorsFile file = read_safetensors(path_);
  const auto no_tensor = error_of([&] { file.floats("bias"); });
  ASSERT_TRUE(no_tensor);
  EXPECT_EQ(no_tensor->code(), ErrorCode::not_found);
  EXPECT_THAT(no_tensor->what(), HasSubstr("\"bias\""));
}

TEST_F(Safetensors, TheWrongTypeIsNotGivenOut) {
  write_safetensors(path_, some_tensors());
  const SafetensorsFile file = read_safetensors(path_);
  const auto as_floats = error_of([&] { file.floats("seen"); });
  const auto as_integers = error_of([&] { file.integers("scalar"); });
  const auto as_doubles = error_of([&] { file.doubles("seen"); });
  ASSERT_TRUE(as_floats && as_integers && as_doubles);
  EXPECT_THAT(as_doubles->what(), HasSubstr("holds integers, not doubles"));
  EXPECT_EQ(as_floats->code(), ErrorCode::invalid);
  EXPECT_EQ(as_integers->code(), ErrorCode::invalid);
}

TEST_F(Safetensors, HeadersThatLieAreCorrupt) {
  const auto entry = [](const std::string& name, const std::string& place) {
    return fmt::format(R"("{}":{{"dtype":"F32","shape":[1],"data_offsets":{}}})", name, place);
  };
  const auto with = [&](const std::string& place, const std::string& values) {
    return file_of(fmt::format("{{{}}}", entry("a", place)), values);
  };
  const std::string eight(8, 'x');
  expect_corrupt(file_of("[]", ""), "JSON object");
  expect_corrupt(file_of("{", ""), "JSON object");
  expect_corrupt(file_of(R"({"a":1})", ""), "\"a\"");
  expect_corrupt(file_of(R"({"__metadata__":{"a":1}})", ""), "\"a\"");
  expect_corrupt(file_of(R"({"__metadata__":3})", ""), "metadata");
  expect_corrupt(file_of(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", "xx"),
                 "BF16");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "xxxx"),
                 "shape");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[1]}})", "xxxx"), "data_offsets");
  expect_corrupt(with("[0,5]", "xxxxx"), "do not fit");
  expect_corrupt(with("[4,0]", "xxxx"), "do not fit");
  expect_corrupt(with("[0,4]", "xxx"), "ends at byte 4 of 3");
  expect_corrupt(with("[0,4]", eight), "last 4 bytes");
  expect_corrupt(with("[4,8]", eight), "hole");
  const std::string two = fmt::format("{{{},{}}}", entry("a", "[0,4]"), entry("b", "[2,6]"));
  expect_corrupt(file_of(two, eight), "overlaps");
}

TEST_F(Safetensors, ShapesTooLargeToMultiplyAreCorrupt) {
  for (const char* shape : {"[4294967296,4294967296]", "[18446744073709551615]",
                            "[0,18446744073709551615]", "[2305843009213693952,8,8]"}) {
    const std::string header =
        fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":[0,0]}}}})", shape);
    expect_corrupt(file_of(header, ""), "do not fit");
  }
}

TEST_F(Safetensors, AHeaderLargerThanTheFileIsCorrupt) {
  expect_corrupt(std::string(8, '\xff'), "header claims");
}

TEST_F(Safetensors, EveryTruncationIsCorrupt) {
  write_safetensors(path_, some_tensors(), {{"step", "1"}});
  const std::string whole = read_file(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_corrupt(whole.substr(0, size), "");
    if (HasFatalFailure()) FAIL() << "cut to " << size << " of " << whole.size();
  }
}

TEST_F(Safetensors, AHeaderThatNestsDeepIsCorrupt) {
  const std::string deep(100'000, '['), back(100'000, ']');
  expect_corrupt(file_of(R"({"a":{"dtype":)" + deep + back + "}}", ""), "not a JSON object");
  expect_corrupt(file_of(R"({"a":{"shape":)" + deep + back + "}}", ""), "not a JSON object");
  expect_corrupt(file_of(deep, ""), "not a JSON object");
}

TEST_F(Safetensors, OnlyAPieceOfALongNameIsSaid) {
  const std::string name(1'000'000, 'n');
  const auto error = error_of([&] { read_bytes(file_of("{\"" + name + "\":1}", "")); });
  ASSERT_TRUE(error);
  EXPECT_LT(std::string(error->what()).size(), 400u);
}

TEST_F(Safetensors, AHeaderLongerThanExpectedIsNotRead) {
  write_safetensors(path_, some_tensors());
  EXPECT_NO_THROW(read_safetensors(path_, {.most_header_bytes = 1000}));
  const auto error = error_of([&] { read_safetensors(path_, {.most_header_bytes = 100}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::corrupt);
}

/// Four terabytes of values that take no disk: nothing may be allocated for them before it is known
/// that the tensors are those wanted, or where they cannot fit.
TEST_F(Safetensors, NoMemoryIsTakenForValuesThatAreNotWanted) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}})";
  std::ofstream(path_, std::ios::binary) << file_of(header, "");
  std::filesystem::resize_file(path_, 8 + header.size() + 4398046511104);
  SafetensorsExpectation other;
  other.check = [](const std::vector<StoredTensor>& tensors) {
    EXPECT_THAT(tensors.at(0).shape, ElementsAre(1099511627776));
    fail(ErrorCode::invalid, "not wanted");
  };
  const auto refused = error_of([&] { read_safetensors(path_, other); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::invalid);
  const auto too_large = error_of([&] { read_safetensors(path_); });
  ASSERT_TRUE(too_large);
  EXPECT_EQ(too_large->code(), ErrorCode::no_space);
}

TEST_F(Safetensors, SidesThatMultiplyToTooMuchAreCorrupt) {
  for (const std::string shape : {"[4294967296,4294967296]", "[18446744073709551615,0]",
                                  "[4611686018427387904,4]", "[9223372036854775807]"}) {
    expect_corrupt(
        file_of(R"({"a":{"dtype":"F32","data_offsets":[0,0],"shape":)" + shape + "}}", ""),
        "do not fit its shape");
  }
}

TEST_F(Safetensors, AFlippedHeaderIsCorruptOrStillInBounds) {
  write_safetensors(path_, some_tensors(), {{"step", "1"}});
  const std::string whole = read_file(path_);
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string flipped = whole;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
      flipped[random() % whole.size()] ^= static_cast<char>(1u << (random() % 8));
    }
    std::size_t bytes = 0;
    const auto error = error_of([&] {
      const SafetensorsFile file = read_bytes(flipped);
      for (const StoredTensor& tensor : file.tensors()) {
        if (tensor.dtype == SafetensorsDtype::f32) bytes += file.floats(tensor.name).size_bytes();
        if (tensor.dtype == SafetensorsDtype::f64) bytes += 8 * file.doubles(tensor.name).size();
        if (tensor.dtype == SafetensorsDtype::i64) bytes += 8 * file.integers(tensor.name).size();
      }
    });
    if (error) {
      ASSERT_EQ(error->code(), ErrorCode::corrupt) << error->what();
    } else {
      ASSERT_LT(bytes, whole.size());
    }
  }
}

}  // namespace
}  // namespace cohort::checkpoint
