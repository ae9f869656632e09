// Feeds a receiver streams that lie about their length, and looks that it refuses them before it
// takes memory.

#include "rpc/wire.h"

#include <gtest/gtest.h>

#include <string>

namespace cohort::rpc {
namespace {

rpc::Frame frame(std::uint64_t total, const std::string& data) {
  rpc::Frame made;
  made.set_total(total);
  made.set_data(data);
  return made;
}

ErrorCode refusal(FrameReader& reader, const rpc::Frame& last) {
  try {
    reader.take(last);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "The frame was taken.";
  return ErrorCode::io;
}

TEST(FrameReader, PutsFramesTogether) {
  FrameReader reader(5);
  EXPECT_FALSE(reader.complete());
  reader.take(frame(5, "abc"));
  EXPECT_FALSE(reader.complete());
  reader.take(frame(0, "de"));
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.message().size(), 5u);
}

TEST(FrameReader, TakesAnEmptyMessage) {
  FrameReader reader(0);
  reader.take(frame(0, ""));
  EXPECT_TRUE(reader.complete());
}

TEST(FrameReader, RefusesATotalAboveTheLimitBeforeTakingMemory) {
  FrameReader reader(100);
  EXPECT_EQ(refusal(reader, frame(std::uint64_t{1} << 62, "x")), ErrorCode::invalid);
  EXPECT_EQ(reader.message().capacity(), 0u);
}

TEST(FrameReader, RefusesMoreThanWasAnnounced) {
  FrameReader at_once(100);
  EXPECT_EQ(refusal(at_once, frame(3, "abcd")), ErrorCode::corrupt);

  FrameReader later(100);
  later.take(frame(3, "ab"));
  EXPECT_EQ(refusal(later, frame(0, "cd")), ErrorCode::corrupt);

  FrameReader after_the_end(100);
  after_the_end.take(frame(2, "ab"));
  EXPECT_EQ(refusal(after_the_end, frame(0, "")), ErrorCode::corrupt);
}

TEST(FrameReader, TakesAWholeMessageOfOneFrameOnly) {
  FrameReader reader(100), too_short(100), too_small(2);
  reader.take_whole(frame(3, "abc"));
  EXPECT_TRUE(reader.complete());
  EXPECT_THROW(too_short.take_whole(frame(4, "abc")), Error);
  EXPECT_THROW(too_small.take_whole(frame(3, "abc")), Error);
  EXPECT_EQ(too_small.message().capacity(), 0u);
  EXPECT_EQ(too_short.message().capacity(), 0u) << "memory was taken for what never came";
}

TEST(FrameReader, RefusesFramesThatBringNothing) {
  FrameReader reader(100);
  EXPECT_EQ(refusal(reader, frame(3, "")), ErrorCode::corrupt);
}

}  // namespace
}  // namespace cohort::rpc
