// Sparse rows, images and text; tables have a file of their own.
#include "data/preprocessing/inputs.h"

#include <algorithm>
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

// Entries ascend, so the last one tells whether all are within the width.
void SparseInput::expand(const formats::SparseRow& row, const formats::RowPlace& place,
                         float* input) const {
  std::fill_n(input, width, 0.0F);
  if (!row.entries.empty() && row.entries.back().column >= width) {
    fail(ErrorCode::invalid, "{}: index {} is beyond the {} features the model was trained with",
         place.text(), row.entries.back().column + 1, width);
  }
  for (const formats::SparseRow::Entry& entry : row.entries) input[entry.column] = entry.value;
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
