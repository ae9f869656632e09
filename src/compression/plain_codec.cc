#include "compression/plain_codec.h"

#include <cstring>

#include "compression/block_codec.h"

namespace cohort {
namespace {

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

}  // namespace cohort
