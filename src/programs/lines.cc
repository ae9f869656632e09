#include "programs/lines.h"

#include <algorithm>

namespace cohort::programs {

void Lines::end_line(std::string& whole) {
  whole += prefix_;
  whole += begun_;
  whole += '\n';
  begun_.clear();
}

void Lines::take(std::string_view bytes, std::string& whole) {
  while (!bytes.empty()) {
    const std::size_t room = longest_ - begun_.size();
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (end > 0) after_return_ = false;
    if (end > room) {
      begun_ += bytes.substr(0, room);
      bytes.remove_prefix(room);
      end_line(whole);
      continue;
    }
    begun_ += bytes.substr(0, end);
    if (end == bytes.size()) return;
    const bool is_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (is_return && begun_.empty()) continue;  // It only goes back to where it is.
    if (is_return || !after_return_) end_line(whole);
    after_return_ = is_return;
  }
}

void Lines::finish(std::string& whole) {
  if (!begun_.empty()) end_line(whole);
}

}  // namespace cohort::programs
