#include "formats/sparse_row.h"

#include <algorithm>
#include <charconv>

#include "base/fail.h"

namespace cohort::formats {
namespace {

/// A dense row has so many floats at most: 64 MiB.
constexpr std::int64_t kMostFeatures = 1 << 24;

/// The text up to the next blank; takes it and the blanks off `rest`.
std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Reads "index:value"; indices count from 1 and ascend.
SparseRow::Entry read_pair(std::string_view word, const RowPlace& place, std::int64_t before) {
  const std::size_t colon = word.find(':');
  std::int64_t index = 0;
  const auto parsed =
      std::from_chars(word.data(), word.data() + std::min(colon, word.size()), index);
  const auto value =
      colon == std::string_view::npos ? std::nullopt : parse_number(word.substr(colon + 1));
  if (!value || parsed.ec != std::errc() || parsed.ptr != word.data() + colon) {
    fail(ErrorCode::invalid, "{}: \"{}\" is not of the form index:value", place.text(),
         excerpt(word));
  }
  if (index <= before) {
    fail(ErrorCode::invalid, "{}: index {} comes after {}; indices start at 1 and ascend",
         place.text(), index, before);
  }
  if (index > kMostFeatures) {
    fail(ErrorCode::invalid, "{}: index {} is too large; there can be {} features", place.text(),
         index, kMostFeatures);
  }
  return {index - 1, static_cast<float>(*value)};
}

}  // namespace

// A first word without a colon is the label; a line may have none, as files to be scored do.
bool read_sparse_row(std::string_view text, const RowPlace& place, SparseRow& row) {
  text = text.substr(0, text.find('#'));  // A comment ends the line.
  std::string_view word = take_word(text);
  if (word.empty()) return false;
  row.label.clear();
  row.entries.clear();
  if (word.find(':') == std::string_view::npos) {
    if (!parse_number(word)) {
      fail(ErrorCode::invalid, "{}: the label \"{}\" is not a number", place.text(), excerpt(word));
    }
    row.label = word;
    word = take_word(text);
  }
  std::int64_t before = 0;
  for (; !word.empty(); word = take_word(text)) {
    row.entries.push_back(read_pair(word, place, before));
    before = row.entries.back().column + 1;
  }
  return true;
}

}  // namespace cohort::formats
