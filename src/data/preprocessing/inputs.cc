// Numbers, images and text; tables and sparse rows have files of their own.
#include "data/preprocessing/inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/vectorize.h"
#include "data/preprocessing/targets.h"

namespace cohort::data {
namespace {

/// Subtracting before multiplying cannot be fused into one instruction, so the floats are the same
/// on every machine.
COHORT_VECTORIZE
void normalise(const std::uint8_t* bytes, float* floats, std::size_t count, float centre,
               float factor) {
  for (std::size_t i = 0; i < count; ++i) {
    floats[i] = (static_cast<float>(bytes[i]) - centre) * factor;
  }
}

/// In ascending order, which is that of their ids.
std::vector<std::uint8_t> distinct_bytes(std::string_view text) {
  std::array<bool, 256> seen{};
  for (const char c : text) seen[static_cast<unsigned char>(c)] = true;
  std::vector<std::uint8_t> bytes;
  for (std::size_t byte = 0; byte < seen.size(); ++byte) {
    if (seen[byte]) bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  return bytes;
}

/// As a message can show it: "é" is two bytes, of which one alone is nothing that can be read.
std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte < 0x7f ? fmt::format("\"{}\"", c) : fmt::format("byte {:#04x}", byte);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// from_chars takes neither a plus nor spaces, and more than a float holds.
std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) <= kLargest)) {
    return std::nullopt;
  }
  return value;
}

void ImageInput::scale(const std::uint8_t* pixels, float* input, std::size_t count) const {
  // On the scale of the bytes.
  normalise(pixels, input, count, static_cast<float>(mean * 255),
            static_cast<float>(1 / (deviation * 255)));
}

Vocabulary::Vocabulary(std::string_view text, bool unknown)
    : Vocabulary(distinct_bytes(text), unknown) {}

Vocabulary::Vocabulary(std::vector<std::uint8_t> bytes, bool unknown)
    : bytes_(std::move(bytes)), unknown_(unknown) {
  ids_.fill(unknown_ ? size() - 1 : -1);
  for (std::size_t id = 0; id < bytes_.size(); ++id) {
    ids_[bytes_[id]] = static_cast<std::int64_t>(id);
  }
}

// The line is counted only once there is something to complain about.
void Vocabulary::check(std::string_view text, const std::string& source,
                       std::int64_t first_line) const {
  const auto strange = std::ranges::find_if(text, [this](char c) { return id(c) < 0; });
  if (strange == text.end()) return;
  const auto line = first_line + std::count(text.begin(), strange, '\n');
  fail(ErrorCode::invalid, "{} line {}: the character {} does not occur in the training data",
       source, line, shown(*strange));
}

std::vector<std::string> Vocabulary::names() const {
  std::vector<std::string> names;
  for (const std::uint8_t byte : bytes_) names.emplace_back(1, static_cast<char>(byte));
  if (unknown_) names.emplace_back(kUnknownName);
  return names;
}

}  // namespace cohort::data
