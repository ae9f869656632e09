#include "compression/block_codec.h"

#include <algorithm>

#include "base/fail.h"
#include "compression/codecs.h"
#include "compression/float_bits.h"

namespace cohort::compression {
namespace {

/// Calls visit(begin, count) for every block of `total` floats.
template <class Visit>
void for_each_block(std::size_t total, Visit&& visit) {
  for (std::size_t begin = 0; begin < total; begin += BlockCodec::kBlock) {
    visit(begin, std::min(BlockCodec::kBlock, total - begin));
  }
}

}  // namespace

bool BlockCodec::valid_block(const std::byte*) const {
  return true;
}

std::size_t BlockCodec::max_bytes() const {
  const std::size_t last = count_ % kBlock;
  return count_ / kBlock * block_bytes(kBlock) + (last > 0 ? block_bytes(last) : 0);
}

// A message is its blocks' messages one after the other, with nothing between them. Where each
// begins follows from the number of floats alone, so a message says nothing that could lead out of
// it: all that is checked is its whole length, and what valid_block() knows. That happens before
// anything is written, so a broken message leaves the sum that it was to be added to as it was.
std::size_t BlockCodec::encode(std::span<const float> values, std::span<std::byte> message) {
  check_count(kind_, values.size(), count_);
  std::byte* to = message.data();
  for_each_block(count_, [&](std::size_t begin, std::size_t count) {
    encode_block(values.subspan(begin, count), to);
    to += block_bytes(count);
  });
  return max_bytes();
}

void BlockCodec::decode(std::span<const std::byte> message, std::span<float> values) const {
  check_count(kind_, values.size(), count_);
  check(message);
  const std::byte* from = message.data();
  for_each_block(count_, [&](std::size_t begin, std::size_t count) {
    decode_block(from, values.subspan(begin, count));
    from += block_bytes(count);
  });
}

void BlockCodec::add(std::span<const std::byte> message, std::span<float> sum) const {
  check_count(kind_, sum.size(), count_);
  check(message);
  alignas(64) float block[kBlock];
  const std::byte* from = message.data();
  for_each_block(count_, [&](std::size_t begin, std::size_t count) {
    decode_block(from, {block, count});
    add_floats(sum.subspan(begin, count), {block, count});
    from += block_bytes(count);
  });
}

void BlockCodec::subtract(std::span<const std::byte> message, std::span<float> values) const {
  check_count(kind_, values.size(), count_);
  check(message);
  alignas(64) float block[kBlock];
  const std::byte* from = message.data();
  for_each_block(count_, [&](std::size_t begin, std::size_t count) {
    decode_block(from, {block, count});
    subtract_floats(values.subspan(begin, count), {block, count});
    from += block_bytes(count);
  });
}

void BlockCodec::clear(std::span<const std::byte> message, std::span<float> values) const {
  check_count(kind_, values.size(), count_);
  check(message);
  std::ranges::fill(values, 0.0F);
}

void BlockCodec::check(std::span<const std::byte> message) const {
  check_length(kind_, message.size(), max_bytes());
  const std::byte* from = message.data();
  for_each_block(count_, [&](std::size_t begin, std::size_t count) {
    if (!valid_block(from)) {
      fail(ErrorCode::corrupt, "a {} message has a scale that is negative or not finite, float {}",
           kind_, begin);
    }
    from += block_bytes(count);
  });
}

namespace {

/// The shortest block codec.
class PlainCodec : public BlockCodec {
 public:
  explicit PlainCodec(std::size_t count) : BlockCodec("none", count) {}

 private:
  std::size_t block_bytes(std::size_t count) const override { return count * sizeof(float); }

  void encode_block(std::span<const float> values, std::byte* message) override {
    std::memcpy(message, values.data(), values.size_bytes());
  }

  void decode_block(const std::byte* message, std::span<float> values) const override {
    std::memcpy(values.data(), message, values.size_bytes());
  }
};

}  // namespace

std::unique_ptr<Codec> make_plain_codec(std::size_t count) {
  return std::make_unique<PlainCodec>(count);
}

}  // namespace cohort::compression
