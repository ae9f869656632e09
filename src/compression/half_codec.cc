#include "base/vectorize.h"
#include "compression/block_codec.h"
#include "compression/codecs.h"
#include "compression/float_bits.h"

namespace cohort::compression {
namespace {

// A half has 10 bits of fraction where a float has 23, and its exponents are smaller by 112.
constexpr std::uint32_t kFractionShift = 13;
constexpr std::uint32_t kExponentShift = 112U << 23;
constexpr std::uint32_t kLargestHalf = 0x477fe000;         // 65504 as a float.
constexpr std::uint32_t kSmallestNormalHalf = 0x38800000;  // 2^-14 as a float.
constexpr std::uint16_t kHalfNan = 0x7e00;

// Every case is computed and one is picked, so that the loops below become vector instructions.
inline std::uint16_t fp16_of(float value) {
  const std::uint32_t sign = (std::bit_cast<std::uint32_t>(value) >> 16) & 0x8000U;
  const std::uint32_t magnitude = magnitude_bits(value);
  const std::uint32_t bits = magnitude < kLargestHalf ? magnitude : kLargestHalf;
  const std::uint32_t to_even = 0xfffU + ((bits >> kFractionShift) & 1U);
  const std::uint32_t normal = (bits + to_even - kExponentShift) >> kFractionShift;
  // Between 0.5 and 1 floats are as far apart as halves below 2^-14: the addition rounds.
  const float small = std::bit_cast<float>(bits) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small) - 0x3f000000U;
  const std::uint32_t number = bits < kSmallestNormalHalf ? subnormal : normal;
  const std::uint32_t half = magnitude <= kInfinityBits ? number : kHalfNan;
  return static_cast<std::uint16_t>(sign | half);
}

// A subnormal half is made by arithmetic, which normalises it; infinity and NaN get their exponent
// twice as far up.
inline float fp16_to_float(std::uint16_t half) {
  const std::uint32_t sign = (static_cast<std::uint32_t>(half) & 0x8000U) << 16;
  const std::uint32_t bits = (static_cast<std::uint32_t>(half) & 0x7fffU) << kFractionShift;
  const std::uint32_t normal = bits + kExponentShift;
  const std::uint32_t special = normal + kExponentShift;
  const float small = std::bit_cast<float>(bits + kSmallestNormalHalf) - 0x1.0p-14F;
  const std::uint32_t number = bits < (1U << 23) ? std::bit_cast<std::uint32_t>(small) : normal;
  return std::bit_cast<float>(sign | (bits < (31U << 23) ? number : special));
}

// Rounds by adding just below half of what is cut off, or half where the last bit kept is odd. A
// NaN is not rounded, since that could make it infinity.
inline std::uint16_t bf16_of(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const std::uint32_t quiet_nan = bits | 0x400000U;
  return static_cast<std::uint16_t>(
      (magnitude_bits(value) <= kInfinityBits ? rounded : quiet_nan) >> 16);
}

inline float bf16_to_float(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

// A message is bytes, which may begin at an odd address.
using Unaligned = std::uint16_t __attribute__((aligned(1), may_alias));

COHORT_VECTORIZE void fp16_loop(const float* __restrict from, Unaligned* __restrict to,
                                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = fp16_of(from[i]);
}
COHORT_VECTORIZE void from_fp16_loop(const Unaligned* __restrict from, float* __restrict to,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = fp16_to_float(from[i]);
}
COHORT_VECTORIZE void bf16_loop(const float* __restrict from, Unaligned* __restrict to,
                                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = bf16_of(from[i]);
}
COHORT_VECTORIZE void from_bf16_loop(const Unaligned* __restrict from, float* __restrict to,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = bf16_to_float(from[i]);
}

using ToHalves = void (*)(const float*, Unaligned*, std::size_t);
using FromHalves = void (*)(const Unaligned*, float*, std::size_t);

/// Both kinds of halves, which differ in their two loops only.
class HalfCodec : public BlockCodec {
 public:
  HalfCodec(std::string kind, std::size_t count, ToHalves to, FromHalves from)
      : BlockCodec(std::move(kind), count), to_(to), from_(from) {}

 private:
  std::size_t block_bytes(std::size_t count) const override {
    return count * sizeof(std::uint16_t);
  }

  void encode_block(std::span<const float> values, std::byte* message) override {
    to_(values.data(), reinterpret_cast<Unaligned*>(message), values.size());
  }

  void decode_block(const std::byte* message, std::span<float> values) const override {
    from_(reinterpret_cast<const Unaligned*>(message), values.data(), values.size());
  }

  ToHalves to_;
  FromHalves from_;
};

}  // namespace

std::unique_ptr<Codec> make_fp16_codec(std::size_t count) {
  return std::make_unique<HalfCodec>("fp16", count, fp16_loop, from_fp16_loop);
}

std::unique_ptr<Codec> make_bf16_codec(std::size_t count) {
  return std::make_unique<HalfCodec>("bf16", count, bf16_loop, from_bf16_loop);
}

std::uint16_t to_fp16(float value) {
  return fp16_of(value);
}
float from_fp16(std::uint16_t half) {
  return fp16_to_float(half);
}
std::uint16_t to_bf16(float value) {
  return bf16_of(value);
}
float from_bf16(std::uint16_t half) {
  return bf16_to_float(half);
}

}  // namespace cohort::compression
