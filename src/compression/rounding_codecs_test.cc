// Proves fp16 and bf16 by their definitions, for all halves and around every boundary; int8 and
// sign by their steps, their means and their chance.

// fp16, bf16, int8 and sign: how far a float may be from what comes out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/block_codec.h"
#include "compression/codec_test_support.h"
#include "compression/codecs.h"

namespace cohort::compression {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = BlockCodec::kBlock;

TEST(Fp16, EveryHalfSurvivesTheWayToFloatAndBack) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const bool special = (half & 0x7c00U) == 0x7c00U;
    if (special) continue;
    ASSERT_EQ(to_fp16(from_fp16(static_cast<std::uint16_t>(half))), half);
  }
}

/// The value of a half by its definition.
double by_definition(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double fraction = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000U) != 0 ? -magnitude : magnitude;
}

TEST(Fp16, DecodesByTheDefinition) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00U) == 0x7c00U) continue;
    ASSERT_EQ(from_fp16(static_cast<std::uint16_t>(half)),
              by_definition(static_cast<std::uint16_t>(half)));
  }
  EXPECT_EQ(from_fp16(0x7c00), kInfinity);
  EXPECT_TRUE(std::isnan(from_fp16(0x7e00)));
}

TEST(Fp16, RoundsToTheNearestAndTiesToEven) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const double size = std::exp2(random.uniform(-27, 15.9));
    const auto value = static_cast<float>(random.below(2) == 0 ? size : -size);
    const std::uint16_t half = to_fp16(value);
    const double off = std::abs(by_definition(half) - value);
    for (const int neighbour : {-1, 1}) {
      const auto next = static_cast<std::uint16_t>(half + neighbour);
      if ((next & 0x7c00U) == 0x7c00U) continue;
      ASSERT_LE(off, std::abs(by_definition(next) - value)) << value;
    }
  }
  EXPECT_EQ(from_fp16(to_fp16(2049)), 2048);
  EXPECT_EQ(from_fp16(to_fp16(2051)), 2052);
  EXPECT_EQ(to_fp16(0x1.0p-25F), 0);
  EXPECT_EQ(to_fp16(0x1.8p-24F), 2);
}

TEST(Fp16, SaturatesAtTheLargestFiniteHalf) {
  EXPECT_EQ(from_fp16(to_fp16(65504)), 65504);
  EXPECT_EQ(from_fp16(to_fp16(1e6F)), 65504);
  EXPECT_EQ(from_fp16(to_fp16(-kInfinity)), -65504);
  EXPECT_TRUE(std::isnan(from_fp16(to_fp16(std::nanf("")))));
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(from_bf16(to_bf16(1.0F)), 1.0F);
  EXPECT_EQ(from_bf16(to_bf16(1.0F + 0x1.0p-8F)), 1.0F);
  EXPECT_EQ(from_bf16(to_bf16(1.0F + 0x1.8p-7F)), 1.0F + 0x1.0p-6F);
  EXPECT_EQ(from_bf16(to_bf16(-kInfinity)), -kInfinity);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001U)))));
  for (const float value : normal_values(1000, 2)) {
    EXPECT_LE(std::abs(from_bf16(to_bf16(value)) - value), std::abs(value) * 0x1.0p-8F);
  }
}

std::vector<float> through(const std::string& kind, const std::vector<float>& values,
                           std::uint64_t seed = 1) {
  const auto codec = make_codec({.kind = kind}, {.count = values.size()}, seed);
  return decoded(*codec, message_of(*codec, values), values.size());
}

TEST(Halves, LoopsAndSingleConversionsAgree) {
  const auto values = normal_values(3 * kBlock + 17, 3);
  const auto fp16 = through("fp16", values);
  const auto bf16 = through("bf16", values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(fp16[i], from_fp16(to_fp16(values[i])));
    ASSERT_EQ(bf16[i], from_bf16(to_bf16(values[i])));
  }
}

/// The largest magnitude of the block that float i is in.
float block_largest(const std::vector<float>& values, std::size_t i) {
  float largest = 0;
  const std::size_t begin = i / kBlock * kBlock;
  for (std::size_t j = begin; j < std::min(begin + kBlock, values.size()); ++j) {
    largest = std::max(largest, std::abs(values[j]));
  }
  return largest;
}

TEST(Int8, IsOffByLessThanOneStepOfItsBlock) {
  auto values = normal_values(2 * kBlock + 5, 4);
  for (std::size_t i = kBlock; i < 2 * kBlock; ++i) values[i] *= 1000;
  const auto said = through("int8", values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LT(std::abs(said[i] - values[i]), block_largest(values, i) / 127 * 1.0001F) << i;
  }
}

TEST(Int8, TheLargestOfABlockIsExact) {
  std::vector<float> values(kBlock);
  values[10] = -3;
  const auto said = through("int8", values);
  EXPECT_FLOAT_EQ(said[10], -3);
  EXPECT_EQ(said[11], 0);
}

TEST(Int8, RoundsWithoutBias) {
  auto values = normal_values(64, 5);
  const auto codec = make_codec({.kind = "int8"}, {.count = values.size()}, 6);
  constexpr int kRounds = 20000;
  std::vector<double> mean(values.size());
  for (int round = 0; round < kRounds; ++round) {
    const auto said = decoded(*codec, message_of(*codec, values), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) mean[i] += said[i] / kRounds;
  }
  // A step is decided with a deviation of at most half of it; 5 deviations of the mean.
  const double allowed = 5 * 0.5 * block_largest(values, 0) / 127 / std::sqrt(kRounds);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(mean[i], values[i], allowed) << i;
}

TEST(Int8, ChanceDependsOnTheSeedAndTheNumberOfTheMessage) {
  const auto values = normal_values(kBlock, 7);
  EXPECT_NE(through("int8", values, 1), through("int8", values, 2));
  const auto codec = make_codec({.kind = "int8"}, {.count = values.size()}, 1);
  EXPECT_NE(message_of(*codec, values), message_of(*codec, values));
}

TEST(Int8, RefusesAScaleThatIsNotFinite) {
  const auto codec = make_codec({.kind = "int8"}, {.count = 2 * kBlock}, 1);
  auto message = message_of(*codec, normal_values(2 * kBlock, 8));
  std::memcpy(message.data() + kBlock + sizeof(float), &kInfinity, sizeof kInfinity);
  std::vector<float> values(2 * kBlock);
  EXPECT_EQ(error_of([&] { codec->decode(message, values); }), ErrorCode::corrupt);
}

TEST(Sign, IsTheSignTimesTheMeanMagnitudeOfTheBlock) {
  const auto values = normal_values(kBlock + 100, 9);
  const auto said = through("sign", values);
  for (const auto& [begin, end] : {std::pair(0UL, kBlock), std::pair(kBlock, kBlock + 100)}) {
    double mean = 0;
    for (std::size_t i = begin; i < end; ++i) {
      mean += std::abs(values[i]) / static_cast<double>(end - begin);
    }
    for (std::size_t i = begin; i < end; ++i) {
      ASSERT_NEAR(said[i], std::copysign(mean, values[i]), 1e-5) << i;
    }
  }
}

TEST(Sign, TakesABitAFloatAndAScaleABlock) {
  const auto codec = make_codec({.kind = "sign"}, {.count = 10 * kBlock}, 1);
  EXPECT_EQ(codec->max_bytes(), 10 * (4 + kBlock / 8));
}

}  // namespace
}  // namespace cohort::compression
