#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace cohort::fuzz {

/// Decoders of what others wrote, fed with anything. A *target* is one decoder or a few of the same
/// kind; libFuzzer calls it with millions of inputs (libfuzzer.cc), the tests with those that are
/// kept (replay.cc). An input may be refused, by an Error. Whatever else comes of it is a fault of
/// the decoder: a sanitizer's complaint, another exception, a check that fails, memory or time out
/// of proportion.
using Bytes = std::span<const std::byte>;

struct Target {
  std::string_view name;
  void (*run)(Bytes input);
  /// Inputs that the decoder must take: made by its own encoder, where it has one, so that they are
  /// of today's format.
  std::vector<std::string> (*seeds)();
};

std::span<const Target> targets();

/// Throws Error(invalid) with the nearest known name.
const Target& target_named(const std::string& name);

/// Whether the decoder took the input; false where it refused it.
bool takes(const Target& target, Bytes input);

/// For targets whose decoder reads a file: one with these bytes, in memory.
class FileOf {
 public:
  explicit FileOf(Bytes bytes);

  std::filesystem::path path() const;

 private:
  UniqueFd fd_;
};

/// For targets that check what they got: aborts, as a sanitizer would.
void require(bool holds, const char* what);

inline Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace cohort::fuzz
