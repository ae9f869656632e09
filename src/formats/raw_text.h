#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::formats {

/// What all readers of rows need: where a row stands, and the numbers in it.

/// Where a raw row stands, for errors: in a line of a file, or among the rows a program gave. Lives
/// no longer than the name it refers to.
struct RowPlace {
  const std::string& file;  ///< Empty: the row is a program's.
  std::int64_t line = 0;    ///< From 1; of a program's rows their number.

  std::string text() const {
    return file.empty() ? fmt::format("row {}", line) : fmt::format("{} line {}", file, line);
  }
};

/// `text` without the spaces and tabs around it.
std::string_view trimmed(std::string_view text);

/// The number that `text`, spaces around it aside, is written as, if a float can be that large; the
/// decimal point is a point whatever the locale.
std::optional<double> parse_number(std::string_view text);

/// Throws Error(invalid), with file and line, where there is a NUL byte in `text`: such a file is
/// not text, and what is written of it later would not be what was read.
void check_no_nul(std::string_view text, const std::string& file, std::int64_t line);

}  // namespace cohort::formats
