#include "formats/raw_text.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/fail.h"

namespace cohort::formats {

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

void check_no_nul(std::string_view text, const std::string& file, std::int64_t line) {
  if (text.find('\0') == std::string_view::npos) return;
  fail(ErrorCode::invalid, "{} line {}: there is a NUL byte in it, so it is no text", file, line);
}

}  // namespace cohort::formats
