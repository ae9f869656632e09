// The journal of an update: what it says at every point of one, and that a process that is killed
// anywhere, by SIGKILL at random times, leaves an update that another one can finish to the same
// bits.

#include "collective/host/host_update.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "base/random.h"
#include "os/memory.h"

namespace cohort::collective {
namespace {

constexpr std::size_t kBlock = 40;

/// Two vectors that change together, owned by one rank.
struct Owned {
  std::span<float> parameters;
  std::span<float> slot;

  std::size_t blocks() const { return (parameters.size() + kBlock - 1) / kBlock; }

  std::vector<std::span<float>> block(std::size_t index) const {
    const std::size_t begin = index * kBlock;
    const std::size_t size = std::min(kBlock, parameters.size() - begin);
    return {parameters.subspan(begin, size), slot.subspan(begin, size)};
  }

  void change(std::size_t index) const {
    const auto floats = block(index);
    for (std::size_t i = 0; i < floats[0].size(); ++i) {
      floats[1][i] = 0.5F * floats[1][i] + 1;
      floats[0][i] -= floats[1][i];
    }
  }
};

TEST(UpdateJournal, TellsWhatIsDone) {
  const UpdateJournal::Shape shape{.world = 2, .block = kBlock, .vectors = 2};
  const os::PrivateMemory memory(UpdateJournal::bytes_needed(shape));
  UpdateJournal first(0, shape, memory.bytes());
  UpdateJournal second(1, shape, memory.bytes());
  EXPECT_EQ(second.progress(0).number, 0U);

  std::vector<float> values(90, 1), slots(90, 2);
  const Owned owned{values, slots};
  first.begin(7, {.scalars = {.lr = 0.25, .step = 9}, .summed = true});
  EXPECT_EQ(second.progress(0).number, 7U);
  EXPECT_EQ(second.progress(0).blocks, 0U);
  EXPECT_FALSE(second.progress(0).in_block);
  EXPECT_EQ(second.progress(0).plan.scalars.lr, 0.25);
  EXPECT_EQ(second.progress(0).plan.scalars.step, 9);
  EXPECT_TRUE(second.progress(0).plan.summed);
  EXPECT_EQ(second.progress(1).number, 0U);

  first.keep(owned.block(0));
  EXPECT_TRUE(second.progress(0).in_block);
  owned.change(0);
  second.restore(0, owned.block(0));
  EXPECT_EQ(values, std::vector<float>(90, 1));
  EXPECT_EQ(slots, std::vector<float>(90, 2));
  owned.change(0);
  first.done();
  EXPECT_FALSE(second.progress(0).in_block);
  EXPECT_EQ(second.progress(0).blocks, 1U);

  // An update of one block after another of one block: no note of the first counts in the second.
  first.begin(8, {});
  EXPECT_FALSE(second.progress(0).in_block);
  EXPECT_EQ(second.progress(0).blocks, 0U);
}

/// Updates without end, until somebody kills it.
[[noreturn]] void update_for_ever(UpdateJournal& journal, const Owned& owned) {
  for (std::uint64_t number = 1;; ++number) {
    journal.begin(number, {});
    for (std::size_t block = 0; block < owned.blocks(); ++block) {
      journal.keep(owned.block(block));
      owned.change(block);
      journal.done();
    }
  }
}

TEST(UpdateJournal, AProcessKilledAnywhereLeavesAnUpdateThatCanBeFinished) {
  constexpr std::size_t kFloats = 170;
  const UpdateJournal::Shape shape{.world = 1, .block = kBlock, .vectors = 2};
  Random random(5);
  for (int round = 0; round < 60; ++round) {
    const auto notes = os::SharedMemory::create(UpdateJournal::bytes_needed(shape));
    const auto floats = os::SharedMemory::create(2 * kFloats * sizeof(float));
    UpdateJournal journal(0, shape, {notes.data(), notes.size()});
    auto* const values = reinterpret_cast<float*>(floats.data());
    const Owned owned{{values, kFloats}, {values + kFloats, kFloats}};
    std::iota(owned.parameters.begin(), owned.parameters.end(), 0.0F);

    const pid_t child = ::fork();
    if (child == 0) update_for_ever(journal, owned);
    while (journal.progress(0).number < 50) {
    }
    for (std::uint64_t i = random.below(20'000); i > 0; --i) journal.progress(0);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);

    const auto progress = journal.progress(0);
    if (progress.in_block) journal.restore(0, owned.block(progress.blocks));
    for (std::size_t block = progress.blocks; block < owned.blocks(); ++block) owned.change(block);

    std::vector<float> wanted(2 * kFloats);
    const Owned reference{std::span(wanted).first(kFloats), std::span(wanted).subspan(kFloats)};
    std::iota(wanted.begin(), wanted.begin() + kFloats, 0.0F);
    for (std::uint64_t number = 0; number < progress.number; ++number) {
      for (std::size_t block = 0; block < reference.blocks(); ++block) reference.change(block);
    }
    ASSERT_EQ(std::vector<float>(values, values + 2 * kFloats), wanted) << "round " << round;
  }
}

}  // namespace
}  // namespace cohort::collective
