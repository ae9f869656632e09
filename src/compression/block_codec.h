#pragma once

#include "compression/codec.h"

namespace cohort::compression {

/// A codec that takes its vectors in blocks, each of which becomes a message of a fixed length on
/// its own; the vector's message is theirs, one after the other. A kind of codec says what becomes
/// of one block, by the four private functions below, and has no checks to make: values and
/// messages that reach it have the right length, and every block of a message was found valid
/// before any is decoded. Blocks are small enough to stay in the first cache between decoding and
/// adding.
class BlockCodec : public Codec {
 public:
  static constexpr std::size_t kBlock = 1024;  ///< Floats; the last block may have fewer.

  std::size_t max_bytes() const final;
  std::size_t encode(std::span<const float> values, std::span<std::byte> message) final;
  void decode(std::span<const std::byte> message, std::span<float> values) const final;
  void add(std::span<const std::byte> message, std::span<float> sum) const final;
  void subtract(std::span<const std::byte> message, std::span<float> values) const final;
  void clear(std::span<const std::byte> message, std::span<float> values) const final;

 protected:
  BlockCodec(std::string kind, std::size_t count) : kind_(std::move(kind)), count_(count) {}

 private:
  /// Of the message of a block of so many floats.
  virtual std::size_t block_bytes(std::size_t count) const = 0;
  virtual void encode_block(std::span<const float> values, std::byte* message) = 0;
  virtual void decode_block(const std::byte* message, std::span<float> values) const = 0;
  /// Whether these bytes can be a block's message; all can unless a kind says otherwise.
  virtual bool valid_block(const std::byte* message) const;

  void check(std::span<const std::byte> message) const;

  std::string kind_;   // For errors.
  std::size_t count_;  // Floats of a vector.
};

}  // namespace cohort::compression
