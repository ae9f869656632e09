#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cohort {

/// What a TcpStore and a StoreServer say to each other. On the wire, all numbers little-endian:
///
///   u32 magic, u32 kind, u64 id, u32 size of key, u32 size of value, key, value
struct StoreMessage {
  enum class Kind : std::uint32_t {
    set,       ///< key, value → done
    get,       ///< key → done with the value, as soon as there is one
    add,       ///< key, value = the amount in decimal → done with the sum
    done,      ///< value
    refused,   ///< value = why
    set_once,  ///< key, value → done with the value that stands
  };

  Kind kind = Kind::done;
  std::uint64_t id = 0;  ///< Chosen by the client; an answer repeats its request's.
  std::string key;
  std::string value;

  bool operator==(const StoreMessage&) const = default;
};

inline constexpr std::size_t kMaxStoreKey = 4 << 10;
inline constexpr std::size_t kMaxStoreValue = 1 << 20;

/// Throws Error(invalid) when the key or the value is too large.
std::string encode_store_message(const StoreMessage& message);

/// Takes the first message off the front of `bytes`; nothing while it is incomplete. Throws
/// Error(corrupt) as soon as the bytes cannot be a message.
std::optional<StoreMessage> decode_store_message(std::string& bytes);

}  // namespace cohort
