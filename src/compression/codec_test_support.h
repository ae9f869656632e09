#pragma once

#include <cohort/error.h>

#include <optional>

#include "base/random.h"
#include "compression/codec.h"

namespace cohort::compression {

/// A vector of 5003 floats with two matrices that lowrank factors, one that it does not, and floats
/// before, between and after them.
inline CodecShape test_shape() {
  return {.count = 5003, .matrices = {{5, 40, 60}, {2410, 3, 4}, {2430, 60, 41}}};
}

inline std::vector<float> normal_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

inline CompressionOptions compression(const std::string& kind) {
  return {.kind = kind, .ratio = 0.05, .rank = 4};
}

/// The message in memory of exactly its length, so that a sanitizer sees reads beyond it.
inline std::vector<std::byte> message_of(Codec& codec, std::span<const float> values) {
  std::vector<std::byte> message(codec.max_bytes());
  message.resize(codec.encode(values, message));
  message.shrink_to_fit();
  return message;
}

inline std::vector<float> decoded(const Codec& codec, std::span<const std::byte> message,
                                  std::size_t count) {
  std::vector<float> values(count, 77);
  codec.decode(message, values);
  return values;
}

/// What kind of error the call ends with; nothing where it returns.
template <class Call>
std::optional<ErrorCode> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace cohort::compression
