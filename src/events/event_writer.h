#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace cohort::events {

/// TensorBoard's event files, such as events.out.tfevents.1718000000.host.4711.0.
///
/// A file is a row of *records* (TensorFlow's TFRecord frame), numbers little endian:
///
///   ┌────────────┬───────────────────────┬──────────────┬─────────────────────┐
///   │ length u64 │ crc of the length u32 │ length bytes │ crc of the data u32 │
///   └────────────┴───────────────────────┴──────────────┴─────────────────────┘
///
/// The data of each is an Event (event.proto): the first says the version of the format, the others
/// hold a scalar, a histogram, or the start of a session. Records are only ever appended, so a file
/// whose writer died can be read up to its last whole record.

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

  /// Hands all events to the operating system. Throws the first failure there was.
  void flush();
  /// Flushes and closes the file. Further calls do nothing; recording after it is dropped.
  void close();

 private:
  template <class Event>
  void append(Event event, std::int64_t step);
  void write_out() noexcept;

  std::filesystem::path path_;
  UniqueFd fd_;
  std::string waiting_;           // Records that are not written yet.
  std::optional<Error> failure_;  // The first; nothing is written after it.
};

/// The two parts of it that are tested by themselves.

/// How values are spread. Values that are not finite are left out of everything.
struct Histogram {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits;  ///< Right ends of the buckets, rising; the last is `max`.
  std::vector<double> counts;  ///< Values of each bucket.
};

/// Buckets of equal width between the smallest and the largest value; one where those are equal,
/// none where there are no values.
Histogram histogram_of(std::span<const float> values);

/// The checksum as TFRecord files store it: turned and shifted, so that the checksum of data that
/// contains checksums stays a good one.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Appends one record to the bytes of a file.
void append_record(std::string& file, std::string_view data);

}  // namespace cohort::events
