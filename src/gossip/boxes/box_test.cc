// One box: what put() and take() do in every state, that threads at both ends lose and tear
// nothing, and that a process which dies while reading harms nobody else.

#include "gossip/boxes/box.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "os/memory.h"

namespace cohort::gossip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Floats = std::vector<float>;

Parcel parcel(double weight, const Floats& floats) {
  return {weight, std::as_bytes(std::span(floats))};
}

Floats floats_of(const Box::Taken& taken) {
  const auto* data = reinterpret_cast<const float*>(taken.message().data());
  return {data, data + taken.message().size() / sizeof(float)};
}

struct OneBox {
  os::PrivateMemory memory{Box::bytes_needed(4 * sizeof(float))};
  Box box{memory.bytes()};
};

TEST(Box, HandsOverOneParcel) {
  OneBox one;
  EXPECT_TRUE(one.box.empty());
  EXPECT_FALSE(one.box.take());
  EXPECT_TRUE(one.box.put(parcel(0.5, {1, 2, 3}), WhenFull::replace));
  EXPECT_FALSE(one.box.empty());
  {
    const auto taken = one.box.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->weight(), 0.5);
    EXPECT_THAT(floats_of(*taken), ElementsAre(1, 2, 3));
    EXPECT_FALSE(one.box.empty());
    EXPECT_FALSE(one.box.take());
  }
  EXPECT_TRUE(one.box.empty());
  EXPECT_FALSE(one.box.take());
}

TEST(Box, CombinesWhatWasNotTakenAsAsked) {
  OneBox one;
  EXPECT_TRUE(one.box.put(parcel(0.5, {1, 2}), WhenFull::replace));
  EXPECT_EQ(one.box.put(parcel(0.25, {5}), WhenFull::replace).returned, 0.5);
  EXPECT_FALSE(one.box.put(parcel(0.125, {6}), WhenFull::refuse));
  EXPECT_EQ(one.box.put(parcel(0.125, {7}), WhenFull::add).returned, 0);
  const auto taken = one.box.take();
  EXPECT_EQ(taken->weight(), 0.375);
  EXPECT_THAT(floats_of(*taken), ElementsAre(12));
}

TEST(Box, NobodyWaitsForAReader) {
  OneBox one;
  ASSERT_TRUE(one.box.put(parcel(1, {1}), WhenFull::replace));
  const auto taken = one.box.take();
  for (const auto when : {WhenFull::replace, WhenFull::add, WhenFull::refuse}) {
    EXPECT_FALSE(one.box.put(parcel(1, {2}), when));
  }
  EXPECT_THAT(floats_of(*taken), ElementsAre(1));
}

TEST(Box, RefusesWhatDoesNotFitAndStaysUsable) {
  OneBox one;
  const Floats too_many(65);
  EXPECT_THROW(one.box.put(parcel(1, too_many), WhenFull::replace), Error);
  ASSERT_TRUE(one.box.put(parcel(1, {1, 2}), WhenFull::add));
  try {
    one.box.put(parcel(1, {1}), WhenFull::add);
    FAIL() << "added one float to two";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("4 bytes cannot be added to one of 8"));
  }
  EXPECT_THAT(floats_of(*one.box.take()), ElementsAre(1, 2));
}

// Two threads as fast as they can: nothing is torn, and what was put is taken, no more, no less.
TEST(Box, LosesAndTearsNothingBetweenThreads) {
  constexpr std::size_t kFloats = 64;
  constexpr int kPuts = 20'000;
  os::PrivateMemory memory(Box::bytes_needed(kFloats * sizeof(float)));
  Box sender(memory.bytes());
  Box receiver(memory.bytes());
  std::atomic<bool> done = false;
  double sent = 0;
  std::thread thread([&] {
    for (int i = 1; i <= kPuts; ++i) {
      const auto when = static_cast<WhenFull>(i % 3);
      const PutResult result = sender.put(parcel(i, Floats(kFloats, 1)), when);
      if (result) sent += i - result.returned;
    }
    done = true;
  });
  double received = 0;
  for (bool last = false; !last;) {
    last = done;
    const auto taken = receiver.take();
    if (!taken) continue;
    received += taken->weight();
    const Floats floats = floats_of(*taken);
    for (const float value : floats) ASSERT_EQ(value, floats[0]);
  }
  thread.join();
  EXPECT_EQ(received, sent);
}

// The other side shares the memory. What it writes there is not believed.
TEST(Box, TheOtherSideCannotMakeItReadPastItsEnd) {
  OneBox one;
  auto& line = *reinterpret_cast<Box::Line*>(one.memory.bytes().data());
  ASSERT_TRUE(one.box.put(parcel(0.5, {1, 2}), WhenFull::replace));
  line.bytes = std::uint64_t{1} << 40;
  EXPECT_THROW(one.box.put(parcel(0.5, {1, 2}), WhenFull::add), Error);
  EXPECT_TRUE(one.box.take()->message().empty()) << "which nobody can read, and all leave out";
  ASSERT_TRUE(one.box.put(parcel(0.5, {1, 2}), WhenFull::replace)) << "it is usable again";
  EXPECT_THAT(floats_of(*one.box.take()), ElementsAre(1, 2));
}

TEST(Box, TheOtherSideCannotGiveBackMoreThanItGot) {
  OneBox one;
  auto& line = *reinterpret_cast<Box::Line*>(one.memory.bytes().data());
  ASSERT_TRUE(one.box.put(parcel(0.5, {1}), WhenFull::replace));
  line.weight = 1e300;
  EXPECT_EQ(one.box.put(parcel(0.25, {1}), WhenFull::replace).returned, 0.5);
}

TEST(Box, OneWhoDiesWhileReadingHarmsNobodyElse) {
  const std::size_t size = Box::bytes_needed(sizeof(float));
  const os::SharedMemory memory = os::SharedMemory::create(2 * size);
  Box to_dead({memory.data(), size});
  Box to_living({memory.data() + size, size});
  ASSERT_TRUE(to_dead.put(parcel(1, {1}), WhenFull::replace));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto taken = to_dead.take();
    ::_exit(taken ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(to_dead.put(parcel(1, {2}), WhenFull::replace));
  EXPECT_TRUE(to_living.put(parcel(1, {3}), WhenFull::replace));
  EXPECT_THAT(floats_of(*to_living.take()), ElementsAre(3));
}

}  // namespace
}  // namespace cohort::gossip
