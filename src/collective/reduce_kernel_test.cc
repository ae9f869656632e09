// Reductions of every type to the bit: order, rounding, what is not a number, and what wraps around.

#include "collective/reduce_kernel.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace cohort::collective {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// The sources combined, as elements of T.
template <class T>
std::vector<T> reduced(ElementType type, Reduction how, const std::vector<std::vector<T>>& given) {
  std::vector<T> out(given.front().size());
  std::vector<const std::byte*> sources;
  for (const auto& source : given) {
    sources.push_back(reinterpret_cast<const std::byte*>(source.data()));
  }
  reduce_of({type, how}, std::as_writable_bytes(std::span(out)), sources);
  return out;
}

/// bfloat16 as the upper half of a float, which has to hold it.
std::uint16_t half_of(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}
float float_of(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// Of one element from each source.
float reduced_halves(Reduction how, const std::vector<float>& values) {
  std::vector<std::vector<std::uint16_t>> sources;
  for (const float value : values) sources.push_back({half_of(value)});
  return float_of(reduced(ElementType::bf16, how, sources).front());
}

template <class T>
void expect_all_reductions(ElementType type) {
  const std::vector<std::vector<T>> given = {{T(2), T(7)}, {T(3), T(1)}, {T(4), T(5)}};
  EXPECT_THAT(reduced(type, Reduction::sum, given), ElementsAre(T(9), T(13)));
  EXPECT_THAT(reduced(type, Reduction::product, given), ElementsAre(T(24), T(35)));
  EXPECT_THAT(reduced(type, Reduction::min, given), ElementsAre(T(2), T(1)));
  EXPECT_THAT(reduced(type, Reduction::max, given), ElementsAre(T(4), T(7)));
  const std::vector<std::vector<T>> one = {{T(2), T(7)}};
  EXPECT_THAT(reduced(type, Reduction::product, one), ElementsAre(T(2), T(7)));
}

TEST(ReduceKernel, CombinesNumbers) {
  expect_all_reductions<float>(ElementType::f32);
  expect_all_reductions<double>(ElementType::f64);
  expect_all_reductions<std::int32_t>(ElementType::i32);
  expect_all_reductions<std::int64_t>(ElementType::i64);
  expect_all_reductions<std::uint8_t>(ElementType::u8);
}

TEST(ReduceKernel, CombinesMoreThanABlock) {
  constexpr std::size_t kSize = 5000;
  for (const std::size_t sources : {1, 2, 70}) {
    std::vector<std::vector<float>> given(sources, std::vector<float>(kSize));
    std::vector<float> sums(kSize), largest(kSize, -kInfinite);
    for (std::size_t s = 0; s < sources; ++s) {
      for (std::size_t i = 0; i < kSize; ++i) {
        given[s][i] = static_cast<float>((i * 37 + s * 1001) % 997);
        sums[i] += given[s][i];
        largest[i] = std::max(largest[i], given[s][i]);
      }
    }
    EXPECT_EQ(reduced(ElementType::f32, Reduction::sum, given), sums);
    EXPECT_EQ(reduced(ElementType::f32, Reduction::max, given), largest);
  }
}

TEST(ReduceKernel, MayWriteToAnyOfItsSources) {
  for (std::size_t target = 0; target < 3; ++target) {
    for (const ElementType type : {ElementType::i32, ElementType::f32}) {
      std::vector<std::vector<std::int32_t>> given(3, std::vector<std::int32_t>(3000, 0));
      std::vector<const std::byte*> sources;
      for (auto& source : given) {
        sources.push_back(reinterpret_cast<const std::byte*>(source.data()));
        std::ranges::fill(source, type == ElementType::i32 ? 1 : std::bit_cast<std::int32_t>(1.0F));
      }
      reduce_of({type, Reduction::sum}, std::as_writable_bytes(std::span(given[target])), sources);
      const auto three = type == ElementType::i32 ? 3 : std::bit_cast<std::int32_t>(3.0F);
      EXPECT_EQ(given[target], std::vector<std::int32_t>(3000, three));
    }
  }
}

TEST(ReduceKernel, WholeNumbersWrapAround) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  using Ints = std::vector<std::vector<std::int32_t>>;
  EXPECT_EQ(reduced(ElementType::i32, Reduction::sum, Ints{{kMost}, {1}})[0], -kMost - 1);
  EXPECT_EQ(reduced(ElementType::i32, Reduction::product, Ints{{kMost}, {2}})[0], -2);
  using Bytes = std::vector<std::vector<std::uint8_t>>;
  EXPECT_EQ(reduced(ElementType::u8, Reduction::sum, Bytes{{200}, {100}})[0], 44);
  EXPECT_EQ(reduced(ElementType::u8, Reduction::product, Bytes{{255}, {255}})[0], 1);
  constexpr auto kMost64 = std::numeric_limits<std::int64_t>::max();
  using Longs = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(reduced(ElementType::i64, Reduction::product, Longs{{kMost64}, {2}})[0], -2);
}

TEST(ReduceKernel, ABooleanIsWhateverIsNotZero) {
  using Bytes = std::vector<std::vector<std::uint8_t>>;
  const Bytes given = {{0, 0, 1, 2}, {0, 7, 0, 255}};
  EXPECT_THAT(reduced(ElementType::boolean, Reduction::sum, given), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(reduced(ElementType::boolean, Reduction::max, given), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(reduced(ElementType::boolean, Reduction::product, given), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(reduced(ElementType::boolean, Reduction::min, given), ElementsAre(0, 0, 0, 1));
}

TEST(ReduceKernel, WhatIsNotANumberIsPassedOnByMinAndMax) {
  using Floats = std::vector<std::vector<float>>;
  for (const Reduction how : {Reduction::min, Reduction::max}) {
    const auto result =
        reduced(ElementType::f32, how, Floats{{kNan, 1, 1}, {1, kNan, 1}, {1, 1, kNan}});
    for (const float value : result) EXPECT_TRUE(std::isnan(value)) << name_of(how);
    EXPECT_TRUE(std::isnan(reduced_halves(how, {kNan, 1})));
    EXPECT_TRUE(std::isnan(reduced_halves(how, {1, kNan})));
  }
}

TEST(ReduceKernel, BFloat16IsSummedInFloatAndRoundedOnce) {
  // Rounded after each step, 256 + 1 would stay 256.
  EXPECT_EQ(reduced_halves(Reduction::sum, {256, 1, 1, 1, 1}), 260);
  // To the nearest that there is, which are 2 apart here; ties to the even one.
  EXPECT_EQ(reduced_halves(Reduction::sum, {256, 1}), 256);
  EXPECT_EQ(reduced_halves(Reduction::sum, {258, 1}), 260);
  EXPECT_EQ(reduced_halves(Reduction::sum, {256, 1, 0.5F}), 258);
  EXPECT_EQ(reduced_halves(Reduction::product, {3, -5, 2}), -30);
  EXPECT_EQ(reduced_halves(Reduction::max, {-3, -5, -2}), -2);
}

TEST(ReduceKernel, BFloat16KeepsWhatIsNotFinite) {
  EXPECT_EQ(reduced_halves(Reduction::sum, {kInfinite, 1}), kInfinite);
  EXPECT_TRUE(std::isnan(reduced_halves(Reduction::sum, {kInfinite, -kInfinite})));
  const float largest = float_of(0x7f7f);
  EXPECT_EQ(reduced_halves(Reduction::sum, {largest, largest}), kInfinite);
  // Its lowest bit is the only one that makes it a NaN.
  const std::vector<std::uint16_t> half = {0x7f81};
  EXPECT_TRUE(std::isnan(float_of(reduced(ElementType::bf16, Reduction::sum,
                                          std::vector<std::vector<std::uint16_t>>{half, half})
                                      .front())));
}

TEST(ReduceKernel, DividesFloats) {
  std::vector<float> floats = {1, 3};
  divide(floats, 3);
  EXPECT_THAT(floats, ElementsAre(1.0F / 3, 1));
  std::vector<double> doubles = {1, 3};
  divide(doubles, 3);
  EXPECT_THAT(doubles, ElementsAre(1.0 / 3, 1));
  std::vector<std::uint16_t> halves = {half_of(3)};
  divide({std::as_writable_bytes(std::span(halves)), ElementType::bf16}, 2);
  EXPECT_EQ(float_of(halves[0]), 1.5F);
  divide(floats, 1);
  EXPECT_THAT(floats, ElementsAre(1.0F / 3, 1));
}

}  // namespace
}  // namespace cohort::collective
