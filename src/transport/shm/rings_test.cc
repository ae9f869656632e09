// One ring by itself: what fits, what is seen before and after publish(), and a long stream between
// two threads, which ThreadSanitizer watches.

#include "transport/shm/rings.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cohort::transport {
namespace {

class ByteRing : public ::testing::Test {
 protected:
  RingMemory memory() { return {&counters_, bytes_}; }

 private:
  RingCounters counters_{};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64);
};

TEST_F(ByteRing, TakesWhatFitsAndShowsItWhenPublished) {
  RingWriter writer(memory());
  RingReader reader(memory());
  const std::vector<std::byte> bytes(100, std::byte{3});
  EXPECT_EQ(writer.write(bytes), 64u);
  EXPECT_EQ(reader.available(), 0u);
  writer.publish();
  EXPECT_EQ(reader.available(), 64u);
  std::vector<std::byte> got(10);
  EXPECT_EQ(reader.read(got), 10u);
  EXPECT_EQ(writer.room(), 0u);
  reader.publish();
  EXPECT_EQ(writer.room(), 10u);
}

TEST_F(ByteRing, PassesAStreamBetweenThreads) {
  constexpr std::size_t kTotal = 100'000;
  RingWriter writer(memory());
  RingReader reader(memory());
  std::jthread sender([&] {
    std::vector<std::byte> piece;
    for (std::size_t sent = 0; sent < kTotal; sent += piece.size()) {
      piece.resize(std::min<std::size_t>(1 + sent % 23, kTotal - sent));
      for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = std::byte((sent + i) % 251);
      piece.resize(writer.write(piece));
      writer.publish();
      if (piece.empty()) std::this_thread::yield();
    }
  });
  std::vector<std::byte> piece(17);
  for (std::size_t received = 0; received < kTotal;) {
    const std::size_t count = reader.read(piece);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(piece[i], std::byte((received + i) % 251)) << received + i;
    }
    reader.publish();
    received += count;
    if (count == 0) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace cohort::transport
