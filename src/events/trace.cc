#include "events/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files.h"

namespace cohort::events {
namespace {

using Span = TraceRecorder::Span;

/// By TraceStream.
constexpr std::array<std::string_view, 3> kStreamNames{"compute", "communication", "data"};

/// Thread ids of a stream start at its number times this; rows beyond the first count on.
constexpr std::size_t kRowsPerStream = 1000;

/// As JSON; bytes that are not UTF-8 are replaced, so that one odd name does not spoil the file.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// The rows of one stream: a span goes to the first row that is free when it begins.
class Rows {
 public:
  std::size_t place(const Span& span) {
    const auto free = std::find_if(ends_.begin(), ends_.end(),
                                   [&](Clock::time_point end) { return end <= span.begin; });
    const auto row = static_cast<std::size_t>(free - ends_.begin());
    if (free == ends_.end()) ends_.emplace_back();
    ends_[row] = span.end;
    return row;
  }

  std::size_t count() const { return ends_.size(); }

 private:
  std::vector<Clock::time_point> ends_;
};

/// The fragment of one rank as it grows: events of Chrome's trace format, one per line. "M" events
/// name processes (ranks) and threads (rows) and say in which order to draw them; "X" events are
/// spans, with begin and duration.
class Fragment {
 public:
  explicit Fragment(int rank) : rank_(rank) {}

  void process(std::string_view kind, const std::string& arguments) {
    fmt::format_to(next(), R"({{"ph":"M","pid":{},"tid":0,"name":"{}","args":{{{}}}}})", rank_,
                   kind, arguments);
  }

  void row(std::size_t stream, std::size_t row) {
    const std::size_t tid = stream * kRowsPerStream + row;
    const std::string suffix = row == 0 ? "" : fmt::format(" {}", row + 1);
    fmt::format_to(
        next(), R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}{}"}}}})",
        rank_, tid, kStreamNames[stream], suffix);
    fmt::format_to(
        next(),
        R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
        rank_, tid, tid);
  }

  void span(const Span& span, std::size_t row, Clock::time_point origin) {
    const auto stream = static_cast<std::size_t>(span.stream);
    fmt::format_to(
        next(),
        R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":{},"ts":{:.3f},"dur":{:.3f},"args":{{"step":{}}}}})",
        rank_, stream * kRowsPerStream + row, kStreamNames[stream], quoted(span.name),
        microseconds(span.begin - origin), microseconds(span.end - span.begin), span.step);
  }

  std::string take() { return std::move(text_); }

 private:
  std::back_insert_iterator<std::string> next() {
    if (!text_.empty()) text_ += ",\n";
    return std::back_inserter(text_);
  }

  const int rank_;
  std::string text_;
};

}  // namespace

void TraceRecorder::record(Span span) {
  span.end = std::max(span.begin, span.end);
  const std::lock_guard lock(mutex_);
  if (spans_.size() < capacity_) {
    spans_.push_back(std::move(span));
  } else {
    ++dropped_;
  }
}

std::size_t TraceRecorder::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

// Spans come in the order in which they ended, and from several threads. They are drawn in the
// order of their begins, each in the first row of its stream that is free by then: so what overlaps
// stands one below the other, and most streams have one row.
std::string TraceRecorder::to_json_events(int rank, Clock::time_point origin) const {
  const std::lock_guard lock(mutex_);
  std::vector<const Span*> ordered;
  for (const Span& span : spans_) ordered.push_back(&span);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Span* a, const Span* b) { return a->begin < b->begin; });

  Fragment fragment(rank);
  fragment.process("process_name", fmt::format(R"("name":"rank {}")", rank));
  fragment.process("process_sort_index", fmt::format(R"("sort_index":{})", rank));
  if (dropped_ > 0) {
    fragment.process("process_labels", fmt::format(R"("labels":"{} spans dropped")", dropped_));
  }
  std::array<Rows, kStreamNames.size()> rows;
  for (const Span* span : ordered) {
    const auto stream = static_cast<std::size_t>(span->stream);
    fragment.span(*span, rows[stream].place(*span), origin);
  }
  for (std::size_t stream = 0; stream < rows.size(); ++stream) {
    for (std::size_t row = 0; row < rows[stream].count(); ++row) fragment.row(stream, row);
  }
  return fragment.take();
}

void write_trace(const std::filesystem::path& path, std::span<const std::string> fragments) {
  AtomicFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  bool first = true;
  for (const std::string& fragment : fragments) {
    if (fragment.empty()) continue;
    if (!first) file.write(",\n");
    file.write(fragment);
    first = false;
  }
  file.write("\n]}\n");
  file.commit();
}

}  // namespace cohort::events
