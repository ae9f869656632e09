#include "formats/text_window.h"

#include <algorithm>

#include "base/fail.h"
#include "formats/raw_text.h"

namespace cohort::formats {
namespace {

/// Read at once, at least.
constexpr std::size_t kLeastBlock = 256 << 10;

}  // namespace

TextWindow::TextWindow(const std::filesystem::path& path) : file_(path.string()), input_(path) {}

// What was taken is dropped here and not in take(), which readers call for every line.
bool TextWindow::extend(std::int64_t line) {
  buffer_.erase(0, taken_);
  taken_ = 0;
  const std::size_t kept = buffer_.size();
  if (kept >= kMostBytes) {
    fail(ErrorCode::invalid, "{} line {}: it does not end within {} MiB", file_, line,
         kMostBytes >> 20);
  }
  // As much again as there is: whoever starts over after each block reads everything twice at most.
  buffer_.resize(kept + std::max(kLeastBlock, kept));
  const std::size_t got = input_.read(std::as_writable_bytes(std::span(buffer_).subspan(kept)));
  buffer_.resize(kept + got);
  return got > 0;
}

// Searches on where it had stopped after each block, so a long line is looked at once.
bool LineReader::next(std::string_view& line) {
  ++line_;
  std::size_t end = 0;
  while ((end = window_.rest().find('\n', end)) == std::string_view::npos) {
    end = window_.rest().size();
    if (!window_.extend(line_)) break;
  }
  line = window_.rest();
  if (line.empty()) return false;
  end = std::min(end, line.size());
  window_.take(std::min(end + 1, line.size()));
  line = line.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  check_no_nul(line, file(), line_);
  return true;
}

}  // namespace cohort::formats
