#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "compression/codecs.h"
#include "compression/float_bits.h"
#include "compression/top_magnitudes.h"

namespace cohort::compression {
namespace {

constexpr std::size_t kLongestGap = 5;  // Bytes, for 32 bits.

std::byte* write_gap(std::uint32_t gap, std::byte* to) {
  for (; gap >= 0x80; gap >>= 7) *to++ = static_cast<std::byte>(gap | 0x80U);
  *to++ = static_cast<std::byte>(gap);
  return to;
}

/// The gap at the front of `bytes`, which it takes off; throws when there is none.
std::uint64_t take_gap(std::span<const std::byte>& bytes) {
  std::uint64_t gap = 0;
  for (std::size_t i = 0; i < std::min(kLongestGap, bytes.size()); ++i) {
    const auto byte = static_cast<std::uint64_t>(bytes[i]);
    gap |= (byte & 0x7fU) << (7 * i);
    if (byte < 0x80) {
      bytes = bytes.subspan(i + 1);
      return gap;
    }
  }
  fail(ErrorCode::corrupt, "a topk message ends within an index or has one that is too long");
}

/// Which values travel is found by TopMagnitudes; here is how they are written and read. A message
/// is walked through twice: once to check all of it, once to do what it says.
class TopkCodec : public Codec {
 public:
  TopkCodec(std::size_t count, std::size_t kept)
      : Codec(Speaks::of_some_places), count_(count), kept_(kept) {}

  std::size_t max_bytes() const override {
    return sizeof(std::uint32_t) + kept_ * (sizeof(float) + kLongestGap);
  }

  std::size_t encode(std::span<const float> values, std::span<std::byte> message) override {
    check_count("topk", values.size(), count_);
    store(static_cast<std::uint32_t>(kept_), message.data());
    std::byte* value_at = message.data() + sizeof(std::uint32_t);
    std::byte* gap_at = value_at + kept_ * sizeof(float);
    std::uint32_t next = 0;
    for (const std::uint32_t index : chosen_.select(values, kept_)) {
      store(values[index], value_at);
      value_at += sizeof(float);
      gap_at = write_gap(index - next, gap_at);
      next = index + 1;
    }
    return static_cast<std::size_t>(gap_at - message.data());
  }

  void decode(std::span<const std::byte> message, std::span<float> values) const override {
    check(message, values);
    std::ranges::fill(values, 0.0F);
    for_each(message, [&](std::size_t index, float value) { values[index] = value; });
  }

  void add(std::span<const std::byte> message, std::span<float> sum) const override {
    check(message, sum);
    for_each(message, [&](std::size_t index, float value) { sum[index] += value; });
  }

  // What travels, travels exactly.
  void subtract(std::span<const std::byte> message, std::span<float> values) const override {
    clear(message, values);
  }

  void clear(std::span<const std::byte> message, std::span<float> values) const override {
    check(message, values);
    for_each(message, [&](std::size_t index, float) { values[index] = 0; });
  }

 private:
  void check(std::span<const std::byte> message, std::span<const float> values) const {
    check_count("topk", values.size(), count_);
    const std::size_t gaps_at = sizeof(std::uint32_t) + kept_ * sizeof(float);
    if (message.size() < gaps_at) {
      fail(ErrorCode::corrupt, "a topk message of {} values has only {} bytes", kept_,
           message.size());
    }
    if (const auto said = load<std::uint32_t>(message.data()); said != kept_) {
      fail(ErrorCode::corrupt, "a topk message says it has {} values instead of {}", said, kept_);
    }
    check_gaps(message.subspan(gaps_at));
  }

  /// That every index is within the vector, and nothing follows the last.
  void check_gaps(std::span<const std::byte> gaps) const {
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < kept_; ++i) {
      next += take_gap(gaps) + 1;
      if (next > count_) {
        fail(ErrorCode::corrupt, "a topk message speaks of float {} of {}", next - 1, count_);
      }
    }
    if (!gaps.empty()) {
      fail(ErrorCode::corrupt, "a topk message goes on for {} bytes after its last index",
           gaps.size());
    }
  }

  /// Calls visit(index, value) for what a checked message says.
  template <class Visit>
  void for_each(std::span<const std::byte> message, Visit&& visit) const {
    const std::byte* value_at = message.data() + sizeof(std::uint32_t);
    auto gaps = message.subspan(sizeof(std::uint32_t) + kept_ * sizeof(float));
    std::size_t next = 0;
    for (std::size_t i = 0; i < kept_; ++i, value_at += sizeof(float)) {
      next += take_gap(gaps) + 1;
      visit(next - 1, load<float>(value_at));
    }
  }

  std::size_t count_;
  std::size_t kept_;
  TopMagnitudes chosen_;
};

}  // namespace

std::unique_ptr<Codec> make_topk_codec(std::size_t count, double ratio) {
  if (!(ratio > 0 && ratio <= 1)) {
    fail(ErrorCode::invalid, "compression ratio is {}; it must be above 0 and at most 1", ratio);
  }
  if (count > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorCode::unsupported, "topk chooses among at most 2^32 - 1 floats, not {}", count);
  }
  const auto share = static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(count)));
  const std::size_t kept = std::min(std::max<std::size_t>(1, share), count);
  return std::make_unique<TopkCodec>(count, kept);
}

}  // namespace cohort::compression
