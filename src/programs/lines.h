#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cohort::programs {

/// What a rank writes, cut into lines that each begin with a prefix, so that those of several ranks
/// can stand below each other and none is ever torn.
///
/// A line ends at "\n", "\r\n" or "\r": a program that draws over its last line (a progress bar) is
/// seen while it does, a line each time, as under torchrun. One that has not ended when the program
/// has is ended for it.
class Lines {
 public:
  /// What is kept of a line that has not ended; a longer one comes in parts, a line each.
  static constexpr std::size_t kLongest = 16 << 20;

  explicit Lines(std::string prefix, std::size_t longest = kLongest)
      : prefix_(std::move(prefix)), longest_(longest) {}

  /// Appends to `whole` the lines that are whole with these bytes.
  void take(std::string_view bytes, std::string& whole);

  /// Appends what has not ended, as a line.
  void finish(std::string& whole);

 private:
  void end_line(std::string& whole);

  const std::string prefix_;
  const std::size_t longest_;
  std::string begun_;          // Of a line that has not ended.
  bool after_return_ = false;  // A line has just ended at "\r": "\n" belongs to it.
};

}  // namespace cohort::programs
