// The list of work left: what was written and noted is read again, in few bytes, and a note that
// was broken off is not there.

#include "server/memory/work_area.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include "base/random.h"
#include "os/memory.h"

namespace cohort::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kBytes = 8 << 20;

cluster::Claim piece(std::int64_t number, std::int64_t parts) {
  return {.step = number / parts, .part = static_cast<int>(number % parts)};
}

TEST(WorkArea, BringsBackWhatWasWrittenAndNoted) {
  const os::PrivateMemory memory(kBytes);
  WorkArea area(memory.bytes());
  EXPECT_EQ(area.read().next, 0);
  EXPECT_THAT(area.read().again, IsEmpty());
  area.write({.next = 9, .parts = 2, .again = {{0, 1}, {3, 0}}});
  area.note({0, 1, 7});  // Of `again`, out of which it does not come before it is done.
  area.note({4, 1});
  area.note({3, 0});
  area.note({5, 0});
  for (const WorkArea& of : {area, WorkArea(memory.bytes())}) {
    const cluster::WorkLeft left = of.read();
    EXPECT_EQ(left.next, 11);
    EXPECT_EQ(left.parts, 2);
    EXPECT_EQ(left.again.front().taken_by, 7);
    EXPECT_THAT(left.again, ElementsAre(cluster::Claim{0, 1}, cluster::Claim{3, 0},
                                        cluster::Claim{4, 1}, cluster::Claim{5, 0}));
  }
  WorkArea other_process(memory.bytes());
  other_process.note({5, 1});
  EXPECT_EQ(other_process.read().next, 12);
  area.write({.next = 12, .parts = 2});
  EXPECT_THAT(area.read().again, IsEmpty());
}

TEST(WorkArea, ComesBackInEveryOrder) {
  const os::PrivateMemory memory(kBytes);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const auto parts = static_cast<std::int64_t>(1 + random.below(5));
    cluster::WorkLeft work{.next = std::int64_t{1} << 50, .parts = parts, .again = {}};
    for (std::int64_t number = 0; number < 1000000;) {
      number += 1 + static_cast<std::int64_t>(random.below(2) == 0 ? 0 : random.below(100000));
      work.again.push_back(piece(number, parts));
    }
    WorkArea area(memory.bytes());
    area.write(work);
    EXPECT_EQ(area.read().again, work.again) << seed;
    EXPECT_EQ(area.read().next, work.next);
  }
}

TEST(WorkArea, TakesTwoBytesForEachPieceHoweverManyAreUnderWay) {
  const os::PrivateMemory memory(kBytes);
  WorkArea area(memory.bytes());
  area.write({.next = 0, .parts = 4});
  std::size_t before = area.used().size();
  for (std::int64_t number = 0; number < 1 << 20; ++number) {
    area.note(piece(number, 4));
    ASSERT_EQ(area.used().size(), before + 2);
    before = area.used().size();
  }
  EXPECT_EQ(area.read().again.size(), std::size_t{1} << 20);
}

TEST(WorkArea, ANoteThatWasBrokenOffIsNotThere) {
  const os::PrivateMemory memory(kBytes);
  WorkArea area(memory.bytes());
  area.write({.next = 5, .parts = 1, .again = {{2, 0}}});
  memory.bytes()[area.used().size()] = std::byte{0xFF};  // Of a process that was killed.
  WorkArea next(memory.bytes());
  next.note({5, 0});
  EXPECT_THAT(next.read().again, ElementsAre(cluster::Claim{2, 0}, cluster::Claim{5, 0}));
}

TEST(WorkArea, RefusesMoreThanItHasRoomForAndWhatItDidNotWrite) {
  const os::PrivateMemory memory(4096);
  WorkArea area(memory.bytes().first(256));
  area.write({.next = 0, .parts = 1});
  EXPECT_THROW(for (std::int64_t number = 0; number < 256; ++number) area.note(piece(number, 1)),
               Error);
  EXPECT_EQ(memory.bytes()[256], std::byte{0});
  for (std::size_t at = 0; at < 64; ++at) {
    area.write({.next = 7, .parts = 2, .again = {{0, 1}, {2, 0}}});
    memory.bytes()[at] = std::byte{0xEE};
    try {
      EXPECT_LE(area.read().again.size(), 2U);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
  }
}

}  // namespace
}  // namespace cohort::server
