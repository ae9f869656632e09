// Event files as they are on the disk, read back by a parser of this file: names, frames, checksums
// and messages; what happens when the disk is full; then the frame and the histogram by themselves.

#include "events/event_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/files.h"
#include "event.pb.h"

namespace cohort::events {
namespace {

using tensorboard::Event;

/// The events of a file; fails the test where frame, checksum or message is wrong.
std::vector<Event> read_events(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  std::vector<Event> events;
  for (std::size_t at = 0; at < file.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, &file[at], sizeof length);
    std::string frame;
    append_record(frame, std::string_view(file).substr(at + 12, length));
    EXPECT_EQ(file.substr(at, frame.size()), frame) << "at byte " << at;
    EXPECT_TRUE(events.emplace_back().ParseFromString(file.substr(at + 12, length)));
    at += frame.size();
  }
  return events;
}

class EventWriterTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(EventWriterTest, NamesTheFileAsTensorBoardExpects) {
  const EventWriter one(folder_.path() / "run" / "events", "host-1");
  const EventWriter other(folder_.path() / "run" / "events", "host-1");
  EXPECT_THAT(
      one.path().filename().string(),
      testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\.host-1\\.[0-9]+\\.[0-9]+"));
  EXPECT_NE(one.path(), other.path());
}

TEST_F(EventWriterTest, AFileComesAfterThoseThatAreThereInTheOrderOfNames) {
  std::vector<std::string> names = {"events.out.tfevents.9000000000.host.99999.7"};
  write_file_atomically(folder_.path() / names[0], "of a clock that is ahead");
  for (int i = 0; i < 3; ++i) {
    names.push_back(EventWriter(folder_.path(), "host").path().filename());
  }
  EXPECT_TRUE(std::ranges::is_sorted(names)) << testing::PrintToString(names);
}

TEST_F(EventWriterTest, BeginsWithTheVersionAtOnce) {
  const EventWriter writer(folder_.path(), "host");
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_GT(events[0].wall_time(), 1.6e9);
}

TEST_F(EventWriterTest, WritesScalarsWhenFlushed) {
  EventWriter writer(folder_.path(), "host");
  writer.scalar("loss", 0.5, 10);
  writer.scalar("accuracy", 0, 20);
  EXPECT_EQ(read_events(writer.path()).size(), 1u);
  writer.flush();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step(), 10);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(events[2].step(), 20);
  EXPECT_TRUE(events[2].summary().value(0).has_simple_value()) << "a zero must be written too";
}

TEST_F(EventWriterTest, WritesHistograms) {
  EventWriter writer(folder_.path(), "host");
  writer.histogram("weights", std::vector<float>{1, 2, 3}, 7);
  writer.histogram("nothing", {}, 8);
  writer.close();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  const auto& histo = events[1].summary().value(0).histo();
  EXPECT_EQ(histo.num(), 3);
  EXPECT_EQ(histo.sum_squares(), 14);
  EXPECT_EQ(histo.bucket_limit_size(), histo.bucket_size());
}

TEST_F(EventWriterTest, MarksWhereASessionStarts) {
  EventWriter writer(folder_.path(), "host");
  writer.session_start(120);
  writer.close();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[1].step(), 120);
}

TEST_F(EventWriterTest, WritesOnItsOwnWhenMuchIsWaitingAndAtTheEnd) {
  std::filesystem::path path;
  {
    EventWriter writer(folder_.path(), "host");
    path = writer.path();
    for (int step = 0; step < 40'000; ++step) writer.scalar("loss", 1, step);
    EXPECT_GT(std::filesystem::file_size(path), 1'000'000u);
  }
  EXPECT_EQ(read_events(path).size(), 40'001u);
}

TEST_F(EventWriterTest, ClosedItTakesNothingMore) {
  EventWriter writer(folder_.path(), "host");
  writer.close();
  writer.scalar("loss", 1, 1);
  EXPECT_NO_THROW(writer.flush());
  EXPECT_NO_THROW(writer.close());
  EXPECT_EQ(read_events(writer.path()).size(), 1u);
}

TEST_F(EventWriterTest, AFolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  const std::filesystem::path file = folder_.path() / "file";
  write_file_atomically(file, "in the way");
  try {
    const EventWriter writer(file / "events", "host");
    FAIL() << "created";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), testing::HasSubstr(file.string()));
  }
}

/// Lets files grow to `bytes` only, as a full disk would, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST_F(EventWriterTest, AFailedWriteStaysFailed) {
  EventWriter writer(folder_.path(), "host");
  {
    const FileSizeLimit limit(100);
    for (int step = 0; step < 100; ++step) writer.scalar("loss", 1, step);
    EXPECT_THROW(writer.flush(), Error);
  }
  writer.scalar("loss", 1, 100);
  EXPECT_THROW(writer.flush(), Error) << "the file has a hole now: later events must not follow";
  EXPECT_THROW(writer.close(), Error);
  EXPECT_LE(std::filesystem::file_size(writer.path()), 100u);
}

TEST_F(EventWriterTest, TheDestructorDoesNotThrow) {
  const FileSizeLimit limit(100);
  EventWriter writer(folder_.path(), "host");
  for (int step = 0; step < 100; ++step) writer.scalar("loss", 1, step);
}

TEST(TfRecord, MasksTheChecksum) {
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
}

TEST(TfRecord, FramesDataByLengthAndChecksums) {
  std::string file = "before";
  append_record(file, "123456789");
  ASSERT_EQ(file.size(), 6u + 8 + 4 + 9 + 4);
  EXPECT_EQ(file.substr(0, 6), "before");
  EXPECT_EQ(file.substr(6, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  const std::uint32_t of_length = masked_crc32c(file.substr(6, 8));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<unsigned char>(file[14 + i]), (of_length >> (8 * i)) & 0xff);
  }
  EXPECT_EQ(file.substr(18, 9), "123456789");
  EXPECT_EQ(file.substr(27), "\xe5\xb0\x8a\xc7");
}

TEST(Histogram, AddsUpItsValues) {
  const Histogram histogram = histogram_of(std::vector<float>{-1, 2, 2, 5});
  EXPECT_EQ(histogram.min, -1);
  EXPECT_EQ(histogram.max, 5);
  EXPECT_EQ(histogram.count, 4);
  EXPECT_EQ(histogram.sum, 8);
  EXPECT_EQ(histogram.sum_of_squares, 34);
}

TEST(Histogram, PutsEveryValueIntoTheBucketOfItsRange) {
  std::vector<float> values(300);
  std::iota(values.begin(), values.end(), 0.0f);
  const Histogram histogram = histogram_of(values);
  ASSERT_EQ(histogram.limits.size(), histogram.counts.size());
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), 300);
  EXPECT_EQ(histogram.limits.back(), 299);
  double left = histogram.min;
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    EXPECT_GT(histogram.limits[i], left);
    EXPECT_NEAR(histogram.counts[i], 10, 1) << "bucket " << i;
    left = histogram.limits[i];
  }
}

TEST(Histogram, OfEqualValuesHasOneBucket) {
  const Histogram histogram = histogram_of(std::vector<float>{3, 3, 3});
  EXPECT_THAT(histogram.limits, testing::ElementsAre(3));
  EXPECT_THAT(histogram.counts, testing::ElementsAre(3));
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Histogram histogram = histogram_of(std::vector<float>{kNan, 1, -kInfinity, 2});
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.sum, 3);
  EXPECT_EQ(histogram.min, 1);

  EXPECT_THAT(histogram_of(std::vector<float>{kNan}).limits, testing::IsEmpty());
  EXPECT_EQ(histogram_of({}).count, 0);
}

TEST(Histogram, SpansTheWholeRangeOfFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const Histogram histogram = histogram_of(std::vector<float>{-kMax, 0, kMax});
  EXPECT_EQ(histogram.counts.front(), 1);
  EXPECT_EQ(histogram.counts.back(), 1);
}

}  // namespace
}  // namespace cohort::events
