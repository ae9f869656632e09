#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "base/vectorize.h"
#include "compression/block_codec.h"
#include "compression/codecs.h"
#include "compression/float_bits.h"

namespace cohort::compression {
namespace {

constexpr float kSteps = 127;  // Of the scale, to either side of 0.
constexpr float kSmallestScaled =
    1e-30F;  // Well above where the scale or its inverse is no normal float.

/// A random number of 32 bits for place `i` under a key: two rounds of multiply and fold, which
/// vector instructions can do for many places at once.
inline std::uint32_t random_at(std::uint32_t i, std::uint32_t key_0, std::uint32_t key_1) {
  std::uint32_t x = (i + key_0) * 0x9e3779b1U;
  x = (x ^ (x >> 15) ^ key_1) * 0x85ebca77U;
  x = (x ^ (x >> 13)) * 0xc2b2ae3dU;
  return x ^ (x >> 16);
}

/// The largest magnitude, infinity as the largest finite float and NaN as 0.
float largest_of(std::span<const float> values) {
  std::uint32_t largest = largest_magnitude_bits(values);
  if (largest >= kInfinityBits) {
    largest = 0;
    for (const float value : values) largest = std::max(largest, finite_magnitude_bits(value));
  }
  return std::bit_cast<float>(largest);
}

/// Each value in steps, rounded down after adding a random number of (0, 1): up as often as it is
/// near the step above. Written without branches, so that many are done at once.
COHORT_VECTORIZE void round_by_chance(std::span<const float> values, float steps_per_unit,
                                      std::uint64_t key, std::int8_t* __restrict to) {
  const float* __restrict from = values.data();
  const auto key_0 = static_cast<std::uint32_t>(key);
  const auto key_1 = static_cast<std::uint32_t>(key >> 32);
  const auto count = static_cast<std::uint32_t>(values.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const float value = magnitude_bits(from[i]) <= kInfinityBits ? from[i] : 0.0F;
    const float steps = value * steps_per_unit;
    const float below = steps < kSteps ? steps : kSteps;
    const float within = below > -kSteps ? below : -kSteps;
    // Even over (0, 1), in 16 bits: 127 plus the largest of them is still below 128 in a float.
    const auto chance = static_cast<std::int32_t>(random_at(i, key_0, key_1) >> 16);
    const float raised = within + (static_cast<float>(chance) + 0.5F) * 0x1.0p-16F;
    const auto towards_zero = static_cast<std::int32_t>(raised);
    const std::int32_t floor = towards_zero - (raised < static_cast<float>(towards_zero) ? 1 : 0);
    to[i] = static_cast<std::int8_t>(floor);
  }
}

COHORT_VECTORIZE void scale_up(const std::int8_t* __restrict from, float scale,
                               float* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale;
}

/// Remembers how many random keys it has used, one for every block of every message, so that
/// another codec can go on where this one stopped.
class Int8Codec : public BlockCodec {
 public:
  Int8Codec(std::size_t count, std::uint64_t seed)
      : BlockCodec("int8", count), seed_(seed), keys_(seed) {}

  CodecMemory memory() const override {
    return {.floats = {}, .numbers = {static_cast<std::int64_t>(keys_used_)}};
  }

  void recall(const CodecMemory& memory) override {
    if (memory.numbers.size() != 1 || !memory.floats.empty()) return;
    keys_used_ = static_cast<std::uint64_t>(memory.numbers[0]);
    keys_ = Random(seed_);
    keys_.skip(keys_used_);
  }

 private:
  // A scale, then the bytes.
  std::size_t block_bytes(std::size_t count) const override { return sizeof(float) + count; }

  void encode_block(std::span<const float> values, std::byte* message) override {
    const float largest = largest_of(values);
    const std::uint64_t key = keys_.next();
    ++keys_used_;
    std::byte* const bytes = message + sizeof(float);
    if (largest < kSmallestScaled) {
      store(0.0F, message);
      std::memset(bytes, 0, values.size());
      return;
    }
    store(largest / kSteps, message);
    round_by_chance(values, kSteps / largest, key, reinterpret_cast<std::int8_t*>(bytes));
  }

  void decode_block(const std::byte* message, std::span<float> values) const override {
    const auto* const bytes = reinterpret_cast<const std::int8_t*>(message + sizeof(float));
    scale_up(bytes, load<float>(message), values.data(), values.size());
  }

  bool valid_block(const std::byte* message) const override {
    const auto scale = load<float>(message);
    return is_finite(scale) && scale >= 0;
  }

  std::uint64_t seed_;
  Random keys_;  // One a block.
  std::uint64_t keys_used_ = 0;
};

}  // namespace

std::unique_ptr<Codec> make_int8_codec(std::size_t count, std::uint64_t seed) {
  return std::make_unique<Int8Codec>(count, seed);
}

}  // namespace cohort::compression
