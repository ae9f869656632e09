#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace cohort::data {

/// Text files of any size, read in little memory: a window that moves over the file, and on top of
/// it readers of lines and of CSV records. Each is for one thread.
///
///   file     ....taken....|---- rest() ----|...not read yet...
///                         take() →         extend() →
///
/// The text of a file, a window at a time. Whoever reads it looks at rest(), takes what it has
/// understood, and asks for more where what it looks for goes on behind the window.
class TextWindow {
 public:
  /// The largest piece that can be looked at at once: a line, or a record of a CSV file.
  static constexpr std::size_t kMostBytes = 64 << 20;

  /// Throws as InputFile does.
  explicit TextWindow(const std::filesystem::path& path);

  /// What has been read and not taken; valid until the next extend().
  std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }
  void take(std::size_t bytes) { taken_ += bytes; }

  /// Reads more behind rest(); false at the end of the file. Throws Error(invalid) naming the file
  /// and `line`, where rest() is as large as a window can be.
  bool extend(std::int64_t line);

  const std::string& file() const { return file_; }

 private:
  std::string file_;
  InputFile input_;
  std::string buffer_;     ///< What was read and not dropped yet.
  std::size_t taken_ = 0;  ///< Bytes at its beginning that are done with.
};

/// The lines of a file, whatever its size, without what ends them ("\n" or "\r\n").
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path) : window_(path) {}

  /// False at the end. `line` is valid until the next call. Throws Error(invalid), with file and
  /// line, for a line that is too long or has a NUL byte.
  bool next(std::string_view& line);

  /// Of the last line; the first is 1.
  std::int64_t line() const { return line_; }
  const std::string& file() const { return window_.file(); }

 private:
  TextWindow window_;
  std::int64_t line_ = 0;
};

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

/// Throws Error(invalid), with file and line, where there is a NUL byte in `text`: such a file is
/// not text, and what is written of it later would not be what was read.
void check_no_nul(std::string_view text, const std::string& file, std::int64_t line);

}  // namespace cohort::data
