#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace cohort {

/// Writes a TensorBoard event file of its own into a folder; one writer per folder, as TensorBoard
/// wants it. Events are kept in memory until flush(), or until there are many. A write that fails
/// (a full disk) is reported by flush() and close(), the first failure every time; what is recorded
/// after it is dropped. Not thread-safe.
class EventWriter {
 public:
  /// Creates the folder where needed, and the file, whose name comes after those of all event files
  /// in the folder. Throws Error(io) or Error(no_space).
  EventWriter(const std::filesystem::path& folder, const std::string& host);
  /// Closes; a failure is only logged.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void scalar(std::string_view tag, double value, std::int64_t step);
  /// Writes nothing where no value is finite.
  void histogram(std::string_view tag, std::span<const float> values, std::int64_t step);
  /// The next values are those of `step` or later: TensorBoard forgets what earlier files say of
  /// that step and of those after it.
  void session_start(std::int64_t step);

  void flush();
  /// Flushes and closes the file. Further calls do nothing; recording after it is dropped.
  void close();

 private:
  template <class Event>
  void append(Event event, std::int64_t step);
  void write_out() noexcept;

  std::filesystem::path path_;
  UniqueFd fd_;
  std::string waiting_;
  std::optional<Error> failure_;
};

}  // namespace cohort
