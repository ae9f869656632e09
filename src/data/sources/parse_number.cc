#include "data/sources/parse_number.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace cohort {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

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

}  // namespace cohort
