#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/fail.h"

namespace cohort::server {

/// How messages are put together and taken apart. Numbers are written the way they are in memory:
/// both ends run the same build, which the mark in front of every message proves (wire.h). What is
/// read may be wrong in any way: every count is checked against the bytes that are left before
/// anything of that size is made. The bytes may be in memory that others write: what take() gives is
/// a copy, and stays what was checked; what take_all() gives does not.

/// T is plain data.
template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

template <class T>
void append_all(std::vector<std::byte>& bytes, std::span<const T> values) {
  const auto raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// Takes a message apart from its front. Throws Error(corrupt) where it ends too early.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    T value;
    take_into(value);
    return value;
  }
  template <class T>
  void take_into(T& value) {
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
  }

  /// A view of the message, which must outlive it. They must stand aligned, as they do where all
  /// before them has a size that is a multiple of T's.
  template <class T>
  std::span<const T> take_all(std::uint64_t count) {
    if (count > bytes_.size() / sizeof(T)) fail_short();
    const auto raw = take_bytes(count * sizeof(T));
    if (reinterpret_cast<std::uintptr_t>(raw.data()) % alignof(T) != 0) {
      fail(ErrorCode::corrupt, "A message's numbers are not where they can be read.");
    }
    return {reinterpret_cast<const T*>(raw.data()), static_cast<std::size_t>(count)};
  }

  /// What was not taken yet.
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> take_bytes(std::size_t count) {
    if (count > bytes_.size()) fail_short();
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  [[noreturn]] static void fail_short() {
    fail(ErrorCode::corrupt, "A message between worker and server ends too early.");
  }

  std::span<const std::byte> bytes_;
};

}  // namespace cohort::server
