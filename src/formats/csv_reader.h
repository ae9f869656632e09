#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/text_window.h"

namespace cohort::formats {

/// Cuts a CSV file into records, a window of it at a time. Fields are parted by commas; a field in
/// double quotes may hold commas, line ends and doubled quotes. Blank lines are skipped, a byte
/// order mark is ignored.
class CsvReader {
 public:
  /// Throws as InputFile does.
  explicit CsvReader(const std::filesystem::path& path);

  /// False at the end. Throws Error(invalid), with file and line, for a quote that is not closed or
  /// not at the end of its field, for a NUL byte and for a record that is too long or has too many
  /// fields.
  bool next(std::vector<std::string>& fields);

  /// Where the last record began; the first line is 1.
  std::int64_t line() const { return record_line_; }
  const std::string& file() const { return window_.file(); }

 private:
  /// `cut`: the text goes on behind the window, so the record has to be read anew.
  enum class Read { record, nothing, cut };
  Read read_record(std::vector<std::string>& fields);
  bool quoted_field(std::string& field);
  void plain_field(std::string& field);
  bool at_line_end() const;
  void skip_line_end();

  TextWindow window_;
  std::string_view rest_;         ///< Of the window, while a record is read.
  bool whole_ = false;            ///< Nothing follows the window.
  std::int64_t line_ = 1;         ///< Where rest_ begins.
  std::int64_t record_line_ = 0;  ///< Where the last record began.
};

}  // namespace cohort::formats
