#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vectorize.h"
#include "compression/block_codec.h"
#include "compression/codecs.h"
#include "compression/float_bits.h"

namespace cohort::compression {
namespace {

// The 1024 signs of a block are 32 rows of 32: the sign of float (row, lane) is bit `row` of word
// `lane`. So vector instructions handle a row of floats with one shift. A last block that is
// shorter is filled up with zeros.
constexpr std::size_t kSignLanes = 32;
constexpr std::size_t kSignRows = BlockCodec::kBlock / kSignLanes;
using Words = std::uint32_t[kSignLanes];

COHORT_VECTORIZE void gather_signs(const float* __restrict values,
                                   std::uint32_t* __restrict words) {
  for (std::size_t lane = 0; lane < kSignLanes; ++lane) words[lane] = 0;
  for (std::size_t row = 0; row < kSignRows; ++row) {
    const float* const in_row = values + row * kSignLanes;
    for (std::size_t lane = 0; lane < kSignLanes; ++lane) {
      words[lane] |= (std::bit_cast<std::uint32_t>(in_row[lane]) >> 31) << row;
    }
  }
}

COHORT_VECTORIZE void spread_signs(const std::uint32_t* __restrict words, float scale,
                                   float* __restrict values) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  for (std::size_t row = 0; row < kSignRows; ++row) {
    float* const in_row = values + row * kSignLanes;
    for (std::size_t lane = 0; lane < kSignLanes; ++lane) {
      in_row[lane] = std::bit_cast<float>(bits | (((words[lane] >> row) & 1U) << 31));
    }
  }
}

/// The sum of magnitude times `weight`, lane by lane, so that the order does not depend on the
/// processor; weighted first, so that large floats do not overflow.
COHORT_VECTORIZE float weighted_sum(const float* __restrict values, float weight) {
  float sums[kSignLanes] = {};
  for (std::size_t row = 0; row < kSignRows; ++row) {
    const float* const in_row = values + row * kSignLanes;
    for (std::size_t lane = 0; lane < kSignLanes; ++lane) {
      sums[lane] += std::bit_cast<float>(finite_magnitude_bits(in_row[lane])) * weight;
    }
  }
  float sum = 0;
  for (const float lane : sums) sum += lane;
  return sum;
}

class SignCodec : public BlockCodec {
 public:
  explicit SignCodec(std::size_t count) : BlockCodec("sign", count) {}

 private:
  std::size_t block_bytes(std::size_t) const override { return sizeof(float) + sizeof(Words); }

  void encode_block(std::span<const float> values, std::byte* message) override {
    if (values.size() == kBlock) return encode_full(values.data(), kBlock, message);
    float filled[kBlock] = {};
    std::ranges::copy(values, filled);
    encode_full(filled, values.size(), message);
  }

  static void encode_full(const float* values, std::size_t count, std::byte* message) {
    const float mean = weighted_sum(values, 1.0F / static_cast<float>(count));
    store(std::min(mean, std::numeric_limits<float>::max()), message);
    Words words;
    gather_signs(values, words);
    std::memcpy(message + sizeof(float), words, sizeof words);
  }

  void decode_block(const std::byte* message, std::span<float> values) const override {
    Words words;
    std::memcpy(words, message + sizeof(float), sizeof words);
    const auto scale = load<float>(message);
    if (values.size() == kBlock) return spread_signs(words, scale, values.data());
    float filled[kBlock];
    spread_signs(words, scale, filled);
    std::copy_n(filled, values.size(), values.data());
  }

  bool valid_block(const std::byte* message) const override {
    const auto scale = load<float>(message);
    return is_finite(scale) && !std::signbit(scale);
  }
};

}  // namespace

std::unique_ptr<Codec> make_sign_codec(std::size_t count) {
  return std::make_unique<SignCodec>(count);
}

}  // namespace cohort::compression
