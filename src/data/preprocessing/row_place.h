#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace cohort {

/// Where a raw row stands, for errors: in a line of a file, or among the rows a program gave.
struct RowPlace {
  const std::string& file;  ///< Empty: none.
  std::int64_t line = 0;

  std::string text() const {
    return file.empty() ? fmt::format("row {}", line) : fmt::format("{} line {}", file, line);
  }
};

}  // namespace cohort
