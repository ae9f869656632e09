#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace cohort::formats {

/// Text files of any size, read in little memory: a window that moves over the file, and on top of
/// it readers of lines and of CSV records (csv_reader.h). Each is for one thread.
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

}  // namespace cohort::formats
