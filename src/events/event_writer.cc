#include "events/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/log.h"
#include "event.pb.h"

namespace cohort::events {
namespace {

using tensorboard::Event;

/// Bytes of events that are kept in memory, at most about.
constexpr std::size_t kLargestWaiting = 1 << 20;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::string_view kNamePrefix = "events.out.tfevents.";

/// The seconds in the names of the folder's event files, at their latest; 0 where there are none.
std::int64_t latest_in(const std::filesystem::path& folder) {
  std::int64_t latest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kNamePrefix)) continue;
    std::int64_t seconds = 0;
    std::from_chars(name.data() + kNamePrefix.size(), name.data() + name.size(), seconds);
    latest = std::max(latest, seconds);
  }
  return latest;
}

/// TensorBoard reads files in the order of their names, so a run that goes on within the same
/// second, or with a clock that went back, takes the next second. The last number tells writers of
/// one process apart.
std::string new_file_name(const std::filesystem::path& folder, const std::string& host) {
  static std::atomic<int> writers = 0;
  const auto now = static_cast<std::int64_t>(seconds_since_1970());
  return fmt::format("{}{:010}.{}.{}.{}", kNamePrefix, std::max(now, latest_in(folder) + 1), host,
                     ::getpid(), writers++);
}

std::filesystem::path new_path(const std::filesystem::path& folder, const std::string& host) {
  create_folder(folder);
  return folder / new_file_name(folder, host);
}

UniqueFd create_file(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) fail_errno("cannot create " + path.string());
  return fd;
}

constexpr std::size_t kBuckets = 30;

/// All of a histogram but its buckets, whose width follows from it.
Histogram totals_of(std::span<const float> values) {
  Histogram totals;
  totals.min = std::numeric_limits<double>::infinity();
  totals.max = -totals.min;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    totals.min = std::min(totals.min, value);
    totals.max = std::max(totals.max, value);
    totals.count += 1;
    totals.sum += value;
    totals.sum_of_squares += value * value;
  }
  return totals;
}

static_assert(std::endian::native == std::endian::little, "numbers are written as they stand");

/// Of the TFRecord format, as the rotation by 15 is.
constexpr std::uint32_t kMaskShift = 0xa282ead8;

template <class Number>
std::string_view bytes_of(const Number& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& folder, const std::string& host)
    : path_(new_path(folder, host)), fd_(create_file(path_)) {
  Event version;
  version.set_file_version("brain.Event:2");
  append(std::move(version), 0);
  flush();
}

EventWriter::~EventWriter() {
  try {
    close();
  } catch (const Error& error) {
    log_warn("TensorBoard events are incomplete: {}", error.what());
  }
}

/// A template so that the header needs no generated code.
template <class Event>
void EventWriter::append(Event event, std::int64_t step) {
  if (!fd_ || failure_) return;
  event.set_wall_time(seconds_since_1970());
  event.set_step(step);
  append_record(waiting_, event.SerializeAsString());
  if (waiting_.size() >= kLargestWaiting) write_out();
}

void EventWriter::scalar(std::string_view tag, double value, std::int64_t step) {
  Event event;
  auto* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  entry->set_simple_value(static_cast<float>(value));
  append(std::move(event), step);
}

void EventWriter::histogram(std::string_view tag, std::span<const float> values,
                            std::int64_t step) {
  const Histogram spread = histogram_of(values);
  if (spread.count == 0) return;
  Event event;
  auto* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  auto* histo = entry->mutable_histo();
  histo->set_min(spread.min);
  histo->set_max(spread.max);
  histo->set_num(spread.count);
  histo->set_sum(spread.sum);
  histo->set_sum_squares(spread.sum_of_squares);
  histo->mutable_bucket_limit()->Add(spread.limits.begin(), spread.limits.end());
  histo->mutable_bucket()->Add(spread.counts.begin(), spread.counts.end());
  append(std::move(event), step);
}

void EventWriter::session_start(std::int64_t step) {
  Event event;
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  append(std::move(event), step);
}

// A disk that is full, or gone, must not end a training because of its plots: the first failure is
// kept and told by flush() and close(), and nothing is written from then on. What was written
// before can be read.
void EventWriter::write_out() noexcept {
  try {
    write_all(fd_.get(), waiting_, path_);
  } catch (const Error& error) {
    failure_ = error;
  }
  waiting_.clear();
}

void EventWriter::flush() {
  if (fd_ && !failure_) write_out();
  if (failure_) throw *failure_;
}

void EventWriter::close() {
  if (!fd_) return;
  if (!failure_) write_out();
  fd_ = UniqueFd();
  if (failure_) throw *failure_;
}

Histogram histogram_of(std::span<const float> values) {
  Histogram histogram = totals_of(values);
  if (histogram.count == 0) return {};
  const double range = histogram.max - histogram.min;
  if (range == 0) {
    histogram.limits = {histogram.max};
    histogram.counts = {histogram.count};
    return histogram;
  }
  for (std::size_t i = 1; i < kBuckets; ++i) {
    histogram.limits.push_back(histogram.min + range * static_cast<double>(i) / kBuckets);
  }
  histogram.limits.push_back(histogram.max);
  histogram.counts.assign(kBuckets, 0);
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const auto bucket = static_cast<std::size_t>((value - histogram.min) / range * kBuckets);
    histogram.counts[std::min(bucket, kBuckets - 1)] += 1;
  }
  return histogram;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + kMaskShift;
}

// The TFRecord format: length, its checksum, the data, its checksum. A reader that finds the end of
// a file in the middle of a record waits for the rest, so a file can be read while it grows.
void append_record(std::string& file, std::string_view data) {
  const std::uint64_t length = data.size();
  file += bytes_of(length);
  file += bytes_of(masked_crc32c(bytes_of(length)));
  file += data;
  file += bytes_of(masked_crc32c(data));
}

}  // namespace cohort::events
