#include "cluster/store_message.h"

#include <bit>
#include <cstring>

#include "base/fail.h"

namespace cohort {

namespace {

static_assert(std::endian::native == std::endian::little, "The wire format is little-endian.");

constexpr std::uint32_t kMagic = 0x31534843;  // "CHS1"

struct Header {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint64_t id;
  std::uint32_t key_size;
  std::uint32_t value_size;
};
static_assert(sizeof(Header) == 24);

void check(const Header& header) {
  if (header.magic != kMagic) {
    fail(ErrorCode::corrupt, "The other end does not speak the protocol of the Cohort store.");
  }
  if (header.kind > static_cast<std::uint32_t>(StoreMessage::Kind::set_once)) {
    fail(ErrorCode::corrupt, "A message of the store has the unknown kind {}.", header.kind);
  }
  if (header.key_size > kMaxStoreKey || header.value_size > kMaxStoreValue) {
    fail(ErrorCode::corrupt,
         "A message of the store announces a key of {} and a value of {} bytes; at most {} and {} "
         "are allowed.",
         header.key_size, header.value_size, kMaxStoreKey, kMaxStoreValue);
  }
}

}  // namespace

std::string encode_store_message(const StoreMessage& message) {
  if (message.key.size() > kMaxStoreKey || message.value.size() > kMaxStoreValue) {
    fail(ErrorCode::invalid,
         "The key \"{:.40}\" has {} bytes and its value {}; the store takes at most {} and {}.",
         message.key, message.key.size(), message.value.size(), kMaxStoreKey, kMaxStoreValue);
  }
  const Header header{kMagic, static_cast<std::uint32_t>(message.kind), message.id,
                      static_cast<std::uint32_t>(message.key.size()),
                      static_cast<std::uint32_t>(message.value.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + message.key + message.value;
}

std::optional<StoreMessage> decode_store_message(std::string& bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  check(header);
  const std::size_t total = sizeof(header) + header.key_size + header.value_size;
  if (bytes.size() < total) return std::nullopt;
  StoreMessage message{static_cast<StoreMessage::Kind>(header.kind), header.id,
                       bytes.substr(sizeof(header), header.key_size),
                       bytes.substr(sizeof(header) + header.key_size, header.value_size)};
  bytes.erase(0, total);
  return message;
}

}  // namespace cohort
