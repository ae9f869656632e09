#include "base/fail.h"

#include <cerrno>
#include <cstring>

namespace cohort {
namespace {

/// Whether a byte stands within a character of UTF-8, after its first byte.
bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

void fail_errno(const std::string& doing) {
  fail_errno(doing, errno);
}

void fail_errno(const std::string& doing, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  throw Error(full ? ErrorCode::no_space : ErrorCode::io,
              doing + ": " + std::strerror(error_number));
}

std::string excerpt(std::string_view text, std::size_t most) {
  std::size_t end = text.size();
  if (end > most) {
    end = most;
    while (end > 0 && continues_character(text[end])) --end;
  }
  std::string shown(text.substr(0, end));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return end == text.size() ? shown : fmt::format("{}… ({} bytes)", shown, text.size());
}

}  // namespace cohort
