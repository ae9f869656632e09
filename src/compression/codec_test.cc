// The conformance suite: what every kind of codec must do, run for each row of the table; a new
// kind is tested by being in the table. Broken messages are made by cutting, flipping and inventing
// bytes; whether a decoder stays within its bounds a sanitizer sees.

#include "compression/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compression/codec_test_support.h"

namespace cohort::compression {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// What every kind of codec must do; codecs' own promises are in the tests named after them.
class EveryCodec : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Codec> codec(std::uint64_t seed = 1) const {
    return make_codec(compression(GetParam()), test_shape(), seed);
  }
  const std::size_t count_ = test_shape().count;
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCodec, ::testing::ValuesIn(codec_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST_P(EveryCodec, MessagesFitAndAreTheSameForTheSameSeedAndNumber) {
  const auto one = codec();
  const auto other = codec();
  for (int number = 0; number < 3; ++number) {
    const auto values = normal_values(count_, 10 + number);
    const auto message = message_of(*one, values);
    EXPECT_LE(message.size(), one->max_bytes());
    EXPECT_EQ(message, message_of(*other, values));
  }
}

TEST_P(EveryCodec, AMessageSaysSomethingOfItsVector) {
  const auto made = codec();
  const auto values = normal_values(count_, 2);
  const auto said = decoded(*made, message_of(*made, values), count_);
  double left = 0, all = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    left += std::pow(values[i] - said[i], 2);
    all += std::pow(values[i], 2);
  }
  EXPECT_LT(left, 0.9 * all);
}

TEST_P(EveryCodec, AddsAndSubtractsWhatItDecodes) {
  const auto made = codec();
  const auto values = normal_values(count_, 3);
  const auto message = message_of(*made, values);
  const auto said = decoded(*made, message, count_);
  auto sum = normal_values(count_, 4);
  const auto before = sum;
  auto rest = values;
  made->add(message, sum);
  made->subtract(message, rest);
  for (std::size_t i = 0; i < count_; ++i) {
    ASSERT_NEAR(sum[i], before[i] + said[i], 1e-5) << i;
    ASSERT_NEAR(rest[i], values[i] - said[i], 1e-5) << i;
  }
}

TEST_P(EveryCodec, ClearsThePlacesItSpeaksOf) {
  const auto made = codec();
  const auto values = normal_values(count_, 5);
  const auto message = message_of(*made, values);
  const auto said = decoded(*made, message, count_);
  std::vector<float> ones(count_, 1);
  made->clear(message, ones);
  for (std::size_t i = 0; i < count_; ++i) {
    ASSERT_EQ(ones[i], !made->chooses() || said[i] != 0 ? 0 : 1) << i;
  }
}

TEST_P(EveryCodec, TakesVectorsOfOneFloatAndOfNone) {
  const auto one = make_codec(compression(GetParam()), {.count = 1}, 1);
  const std::vector<float> half = {0.5F};
  EXPECT_EQ(decoded(*one, message_of(*one, half), 1), half);
  const auto none = make_codec(compression(GetParam()), {.count = 0}, 1);
  EXPECT_EQ(decoded(*none, message_of(*none, {}), 0), std::vector<float>());
}

TEST_P(EveryCodec, AVectorOfZerosStaysOne) {
  const auto made = codec();
  const std::vector<float> zeros(count_);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(decoded(*made, message_of(*made, zeros), count_), ::testing::Each(0.0F));
  }
}

TEST_P(EveryCodec, SurvivesNumbersThatAreNotFinite) {
  const auto made = codec();
  for (const float bad : {kInfinity, -kInfinity, kNan, std::numeric_limits<float>::max(), 1e-42F}) {
    auto values = normal_values(count_, 6);
    values[7] = values[2500] = values[count_ - 1] = bad;
    auto message = message_of(*made, values);
    decoded(*made, message, count_);
    made->subtract(message, values);
    for (const float rest : values) ASSERT_TRUE(std::isfinite(rest)) << "rest of " << bad;
  }
  const auto values = normal_values(count_, 7);
  for (const float value : decoded(*made, message_of(*made, values), count_)) {
    ASSERT_TRUE(std::isfinite(value)) << "bad numbers must not outlive their vector";
  }
}

TEST_P(EveryCodec, RefusesVectorsOfAnotherLength) {
  const auto made = codec();
  const auto values = normal_values(count_, 8);
  const auto message = message_of(*made, values);
  std::vector<float> shorter(count_ - 1);
  std::vector<std::byte> room(made->max_bytes());
  EXPECT_EQ(error_of([&] { made->encode(shorter, room); }), ErrorCode::invalid);
  EXPECT_EQ(error_of([&] { made->decode(message, shorter); }), ErrorCode::invalid);
  EXPECT_EQ(error_of([&] { made->add(message, shorter); }), ErrorCode::invalid);
}

TEST_P(EveryCodec, RefusesEveryTruncationAndWritesNothing) {
  const auto made = codec();
  const auto message = message_of(*made, normal_values(count_, 9));
  std::vector<float> values(count_, 77);
  for (std::size_t size = 0; size < message.size(); ++size) {
    const std::vector<std::byte> cut(message.begin(), message.begin() + static_cast<long>(size));
    ASSERT_EQ(error_of([&] { made->decode(cut, values); }), ErrorCode::corrupt) << size;
    ASSERT_EQ(error_of([&] { made->add(cut, values); }), ErrorCode::corrupt) << size;
    ASSERT_EQ(error_of([&] { made->subtract(cut, values); }), ErrorCode::corrupt) << size;
    ASSERT_EQ(error_of([&] { made->clear(cut, values); }), ErrorCode::corrupt) << size;
  }
  auto longer = message;
  longer.push_back(std::byte{0});
  EXPECT_EQ(error_of([&] { made->decode(longer, values); }), ErrorCode::corrupt);
  EXPECT_THAT(values, ::testing::Each(77.0F));
}

/// Whatever the bytes are, a decoder either refuses them and writes nothing or takes them; a
/// sanitizer sees whether it stays within its bounds.
void decode_or_refuse(const Codec& codec, const std::vector<std::byte>& message,
                      std::size_t count) {
  std::vector<float> values(count, 77);
  const auto error = error_of([&] { codec.decode(message, values); });
  if (!error) return;
  ASSERT_EQ(error, ErrorCode::corrupt);
  ASSERT_THAT(values, ::testing::Each(77.0F));
}

TEST_P(EveryCodec, NoFlippedByteAndNoRandomMessageDoesHarm) {
  const CodecShape shape{.count = 300, .matrices = {{10, 12, 20}}};
  const auto made = make_codec(compression(GetParam()), shape, 1);
  const auto good = message_of(*made, normal_values(shape.count, 10));
  Random random(11);
  for (int round = 0; round < 4000; ++round) {
    auto message = good;
    for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
      message[random.below(message.size())] = static_cast<std::byte>(random.below(256));
    }
    decode_or_refuse(*made, message, shape.count);
    message.resize(random.below(good.size() + 8));
    for (std::byte& byte : message) byte = static_cast<std::byte>(random.below(256));
    decode_or_refuse(*made, message, shape.count);
  }
}

TEST(MakeCodec, NamesWhatIsWrong) {
  const CodecShape shape{.count = 10};
  const auto made = [&](const CompressionOptions& options) {
    return error_of([&] { make_codec(options, shape, 1); });
  };
  EXPECT_EQ(made({.kind = "int9"}), ErrorCode::invalid);
  EXPECT_EQ(made({.kind = "topk", .ratio = 0}), ErrorCode::invalid);
  EXPECT_EQ(made({.kind = "topk", .ratio = 1.5}), ErrorCode::invalid);
  EXPECT_EQ(made({.kind = "topk", .ratio = kNan}), ErrorCode::invalid);
  EXPECT_EQ(made({.kind = "lowrank", .rank = 0}), ErrorCode::invalid);
  EXPECT_EQ(made({.kind = "topk", .ratio = 1}), std::nullopt);
}

}  // namespace
}  // namespace cohort::compression
