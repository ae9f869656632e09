#include "base/excerpt.h"

#include <fmt/format.h>

namespace cohort {
namespace {

bool goes_on(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;  // Within a character of UTF-8.
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t most) {
  std::size_t end = text.size();
  if (end > most) {
    end = most;
    while (end > 0 && goes_on(text[end])) --end;
  }
  std::string shown(text.substr(0, end));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return end == text.size() ? shown : fmt::format("{}… ({} bytes)", shown, text.size());
}

}  // namespace cohort
