#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// Cuts CSV text into records. Fields are parted by commas; a field in double quotes may hold
/// commas, line ends and doubled quotes. Blank lines are skipped, a byte order mark is ignored.
class CsvReader {
 public:
  /// `file` is for messages; `text` must outlive the reader.
  CsvReader(std::string file, std::string_view text);

  /// False at the end. Throws Error(invalid), with file and line, for a quote that is not closed or
  /// not at the end of its field.
  bool next(std::vector<std::string>& fields);

  /// Where the last record began; the first line is 1.
  std::int64_t line() const { return record_line_; }

 private:
  std::string quoted_field();
  std::string plain_field();
  bool at_line_end() const;
  void skip_line_end();

  std::string file_;
  std::string_view rest_;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 0;
};

}  // namespace cohort
