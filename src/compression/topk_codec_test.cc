// Proves that the values chosen are those that sorting finds, on vectors that mislead a sample, and
// that broken messages are refused.

#include "compression/codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "compression/codec_test_support.h"
#include "compression/top_magnitudes.h"

namespace cohort::compression {
namespace {

/// By sorting everything: larger magnitudes first, of equal ones the lower index.
std::vector<std::uint32_t> by_sorting(const std::vector<float>& values, std::size_t wanted) {
  std::vector<std::uint32_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0U);
  std::ranges::stable_sort(indices, [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  indices.resize(wanted);
  std::ranges::sort(indices);
  return indices;
}

struct Selection {
  std::string name;
  std::vector<float> values;
};

/// Vectors for which a sample says the truth, nothing, or the wrong thing.
std::vector<Selection> selections() {
  constexpr std::size_t kLarge = 300007;  // More than is looked at without taking a sample.
  auto front_heavy = normal_values(kLarge, 1);
  for (std::size_t i = 0; i < 4000; ++i) front_heavy[i] *= 1000;
  std::vector<float> mostly_zero(kLarge);
  for (std::size_t i = 0; i < kLarge; i += 1000) mostly_zero[i] = static_cast<float>(i);
  std::vector<float> few_levels = normal_values(kLarge, 2);
  for (float& value : few_levels) value = std::round(value);
  return {{"short", normal_values(1000, 3)},
          {"normal", normal_values(kLarge, 4)},
          {"front heavy", front_heavy},
          {"mostly zero", mostly_zero},
          {"all equal", std::vector<float>(kLarge, -2)},
          {"few levels", few_levels}};
}

TEST(TopMagnitudes, AreThoseThatSortingFinds) {
  TopMagnitudes top;
  for (const Selection& selection : selections()) {
    const std::size_t count = selection.values.size();
    for (const std::size_t wanted : {1UL, 7UL, count / 100, count / 3, count}) {
      const auto chosen = top.select(selection.values, wanted);
      ASSERT_TRUE(std::ranges::equal(chosen, by_sorting(selection.values, wanted)))
          << selection.name << ", " << wanted;
    }
  }
}

TEST(TopMagnitudes, AgreeWithNthElement) {
  auto values = normal_values(500000, 5);
  constexpr std::size_t kWanted = 5000;
  TopMagnitudes top;
  const auto chosen = top.select(values, kWanted);
  float smallest = 1e9F;
  for (const std::uint32_t i : chosen) smallest = std::min(smallest, std::abs(values[i]));
  for (float& value : values) value = std::abs(value);
  std::nth_element(values.begin(), values.begin() + kWanted - 1, values.end(), std::greater<>());
  EXPECT_EQ(smallest, values[kWanted - 1]);
  EXPECT_EQ(chosen.size(), kWanted);
}

std::size_t values_in_message(std::size_t count, double ratio) {
  const auto codec = make_topk_codec(count, ratio);
  const auto values = normal_values(count, 6);
  const auto said = decoded(*codec, message_of(*codec, values), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(said[i] == 0 || said[i] == values[i]);
  }
  return static_cast<std::size_t>(
      std::ranges::count_if(said, [](float value) { return value != 0; }));
}

TEST(Topk, KeepsExactlyTheShareAskedFor) {
  EXPECT_EQ(values_in_message(1000, 0.01), 10U);
  EXPECT_EQ(values_in_message(1001, 0.01), 11U);
  EXPECT_EQ(values_in_message(10, 0.01), 1U);
  EXPECT_EQ(values_in_message(100, 1), 100U);
}

TEST(Topk, SpendsLittleMoreThanFiveBytesAValue) {
  constexpr std::size_t kCount = 100000;
  const auto codec = make_topk_codec(kCount, 0.01);
  EXPECT_LT(message_of(*codec, normal_values(kCount, 7)).size(), 1000 * 5.6);
}

class BrokenTopk : public ::testing::Test {
 protected:
  std::optional<ErrorCode> error(const std::vector<std::byte>& message) const {
    std::vector<float> values(100);
    return error_of([&] { codec_->decode(message, values); });
  }

  /// u32 2, two floats, then these bytes for the gaps.
  static std::vector<std::byte> with_gaps(const std::vector<int>& gaps, std::uint32_t count = 2) {
    std::vector<std::byte> message(12);
    std::memcpy(message.data(), &count, sizeof count);
    for (const int byte : gaps) message.push_back(static_cast<std::byte>(byte));
    return message;
  }

  std::unique_ptr<Codec> codec_ = make_topk_codec(100, 0.02);
};

TEST_F(BrokenTopk, IsRefused) {
  EXPECT_EQ(error(with_gaps({0, 0})), std::nullopt);
  EXPECT_EQ(error(with_gaps({98, 0})), std::nullopt) << "floats 98 and 99 of 100";
  EXPECT_EQ(error(with_gaps({98, 1})), ErrorCode::corrupt) << "float 100 of 100";
  EXPECT_EQ(error(with_gaps({100, 0})), ErrorCode::corrupt);
  EXPECT_EQ(error(with_gaps({0})), ErrorCode::corrupt) << "an index is missing";
  EXPECT_EQ(error(with_gaps({0, 0x80})), ErrorCode::corrupt) << "an index ends too early";
  EXPECT_EQ(error(with_gaps({0, 0, 0})), ErrorCode::corrupt) << "one too many";
  EXPECT_EQ(error(with_gaps({0, 0x80, 0x80, 0x80, 0x80, 0x80, 0})), ErrorCode::corrupt);
  EXPECT_EQ(error(with_gaps({0xff, 0xff, 0xff, 0xff, 0x7f, 0})), ErrorCode::corrupt);
  for (const std::uint32_t count : {0U, 1U, 3U, 0xffffffffU}) {
    EXPECT_EQ(error(with_gaps({0, 0}, count)), ErrorCode::corrupt) << count;
  }
}

}  // namespace
}  // namespace cohort::compression
