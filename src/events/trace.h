#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/deadline.h"

namespace cohort::events {

/// What each rank did when, as a file that Perfetto and chrome://tracing draw.
///
///   rank 0: TraceRecorder ── to_json_events() ──▶ fragment ─┐
///   rank 1: TraceRecorder ── to_json_events() ──▶ fragment ─┴─▶ write_trace() ──▶ trace.json
///
/// In the picture a rank is a process and a stream a row of it. How fragments come to the one who
/// writes them is the caller's business.

/// Kinds of work that go on beside each other in one task; a row of the picture each.
enum class TraceStream { compute, communication, data };

/// What one rank did when, in memory until the end. Thread-safe: whoever has done something records
/// it, in any order.
class TraceRecorder {
 public:
  /// Spans beyond `capacity` are dropped and counted, so that a long run does not fill the memory.
  explicit TraceRecorder(std::size_t capacity = 1'000'000) : capacity_(capacity) {}

  /// Something that was done, from begin to end.
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

/// One trace of all the ranks' fragments. Written atomically. Empty fragments, of ranks that have
/// none, are left out. Throws Error naming the file.
void write_trace(const std::filesystem::path& path, std::span<const std::string> fragments);

}  // namespace cohort::events
