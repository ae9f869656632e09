#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// Which bytes of a text a model knows, and the ids it knows them by: in ascending order, and after
/// them, where there is one, the unknown.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Of the distinct bytes of `text`.
  Vocabulary(std::string_view text, bool unknown);
  /// Of these bytes, which ascend.
  Vocabulary(std::vector<std::uint8_t> bytes, bool unknown);

  std::int64_t size() const {
    return static_cast<std::int64_t>(bytes_.size()) + (unknown_ ? 1 : 0);
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  bool unknown() const { return unknown_; }

  /// Of a byte that it knows, or has an unknown for.
  std::int64_t id(char c) const { return ids_[static_cast<unsigned char>(c)]; }

  /// Throws Error(invalid) unless every byte of `text` has an id, naming the character, `source`
  /// and the line, of which `first_line` is the text's first.
  void check(std::string_view text, const std::string& source, std::int64_t first_line = 1) const;

  /// By id; each a byte as it is, or kUnknownName.
  std::vector<std::string> names() const;

 private:
  std::array<std::int64_t, 256> ids_{};
  std::vector<std::uint8_t> bytes_;
  bool unknown_ = false;
};

/// How text becomes a model's input: `context` characters, each as its id.
struct TextInput {
  Vocabulary vocabulary;
  std::int64_t context = 0;
};

}  // namespace cohort
