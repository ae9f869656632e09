#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/deadline.h"

namespace cohort {

/// Kinds of work that go on beside each other in one task; a row of the picture each.
enum class TraceStream { compute, communication, data };

/// What one task did when, in memory until the end. Thread-safe.
class TraceRecorder {
 public:
  /// Spans beyond `capacity` are dropped and counted, so that a long run does not fill the memory.
  explicit TraceRecorder(std::size_t capacity = 1'000'000) : capacity_(capacity) {}

  struct Span {
    TraceStream stream = TraceStream::compute;
    std::string name;
    Clock::time_point begin;
    Clock::time_point end;
    std::int64_t step = 0;
  };
  void record(Span span);

  std::size_t dropped() const;

  /// The spans as events of Chrome's trace format, without the brackets around them: a fragment for
  /// write_trace. Times are microseconds since `origin`, which all ranks must share; the clock
  /// itself is common to all processes of a host. Spans of a stream that overlap are put on rows of
  /// their own ("communication 2").
  std::string to_json_events(int rank, Clock::time_point origin) const;

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<Span> spans_;   // Guarded by mutex_.
  std::size_t dropped_ = 0;  // Guarded by mutex_.
};

/// One trace of all the ranks' fragments, for chrome://tracing and Perfetto. Written atomically.
void write_trace(const std::filesystem::path& path, std::span<const std::string> fragments);

}  // namespace cohort
