#include "base/parse_integer.h"

#include <charconv>

namespace cohort {

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t least,
                                          std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, wrong] = std::from_chars(text.data(), end, value);
  if (wrong != std::errc() || stopped != end || value < least || value > most) return std::nullopt;
  return value;
}

}  // namespace cohort
