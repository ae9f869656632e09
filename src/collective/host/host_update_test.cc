// Updates that the ranks of one host make together, and what is left of one when a rank dies of it.
//
// UpdateJournal alone: what it says at every point of an update, and that a process that is killed
// anywhere, by SIGKILL at random times, leaves one that another can finish to the same bits.
//
// HostUpdate, all ranks in one thread: nothing here waits, since the barrier between the ranks'
// gradients and their update is the caller's. A death is an optimizer that changes half of a block
// and throws. Every pair of places where two ranks can have stopped is tried, and whoever finishes
// their update dies of it, too, at every block. What comes of it is always what one owner of
// everything would have made in one pass, or, where nobody had begun, nothing.

#include "collective/host/host_update.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "optimizer/optimizer.h"
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

  // An update of one block after another of one block: nothing of the first counts in the second.
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
    const auto lines = os::SharedMemory::create(UpdateJournal::bytes_needed(shape));
    const auto floats = os::SharedMemory::create(2 * kFloats * sizeof(float));
    UpdateJournal journal(0, shape, {lines.data(), lines.size()});
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

struct Death {};

/// Dies in the update that it is told to: half of the block has changed then.
class MortalOptimizer : public optimizer::Optimizer {
 public:
  static constexpr int kForEver = 1'000'000;

  std::vector<std::string> slots() const override { return rule_->slots(); }
  void update(std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots,
              const optimizer::UpdateScalars& scalars) const override {
    const bool dies = lives_-- == 0;
    const std::size_t size = dies ? parameters.size() / 2 : parameters.size();
    std::vector<std::span<float>> changing;
    for (const auto slot : slots) changing.push_back(slot.first(size));
    rule_->update(parameters.first(size), gradients.first(size), changing, scalars);
    if (dies) throw Death();
  }

  /// It lives for so many updates more.
  void live(int updates) { lives_ = updates; }

 private:
  std::unique_ptr<Optimizer> rule_ =
      optimizer::make_optimizer({.kind = "sgd", .lr = 0.1, .momentum = 0.9});
  mutable int lives_ = kForEver;
};

constexpr std::uint64_t kNumber = 5;
constexpr std::size_t kHostFloats =
    60'000;  // Two blocks for each of two ranks, one of them shorter.
constexpr optimizer::UpdateScalars kScalars = {.lr = 0.1, .step = 3, .gradient_scale = 0.5};

/// The ranks of one host: parameters, momentum and each rank's gradients, all of them random.
class Host {
 public:
  explicit Host(int world)
      : shape_{.world = world, .contribution = kHostFloats, .shared = 2 * kHostFloats},
        memory_(HostReduction::bytes_needed(shape_)),
        journal_(HostUpdate::journal_bytes(world, kHostFloats, 2)) {
    for (int rank = 0; rank < world; ++rank) {
      groups_.push_back(std::make_unique<HostReduction>(rank, shape_, memory_.bytes(),
                                                        os::PeerWatch(), os::WaitPolicy()));
      fill(groups_.back()->contribution(rank), rank);
    }
    fill(shared(), 100);
  }

  /// What an update changes: parameters, then momentum.
  std::span<float> shared() { return groups_.front()->shared(); }
  std::vector<float> floats() { return {shared().begin(), shared().end()}; }

  HostUpdate update_of(int rank) {
    return {*groups_[static_cast<std::size_t>(rank)],
            {shared().first(kHostFloats), shared().last(kHostFloats)},
            optimizer_,
            shape_.world == 1 ? std::span<std::byte>() : journal_.bytes()};
  }

  MortalOptimizer& optimizer() { return optimizer_; }
  std::span<float> gradients(int rank) { return groups_.front()->contribution(rank); }

  /// What floats() shall be afterwards: one owner of everything, and one pass.
  std::vector<float> floats_after() {
    std::vector<float> sums(gradients(0).begin(), gradients(0).end());
    for (int rank = 1; rank < shape_.world; ++rank) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += gradients(rank)[i];
    }
    std::vector<float> wanted = floats();
    const std::span<float> momentum = std::span(wanted).last(kHostFloats);
    MortalOptimizer().update(std::span(wanted).first(kHostFloats), sums, {&momentum, 1}, kScalars);
    return wanted;
  }

  /// Rank `rank` comes so far: -1 not to begin; 0 to begin; 2n to n blocks done; 2n + 1 to die in
  /// the block after these.
  void come(int rank, int halves, bool summed) {
    HostUpdate update = update_of(rank);
    if (halves < 0) return;
    update.begin(kNumber, {.scalars = kScalars, .summed = summed});
    update.for_each_block([&](Segment block) {
      if (halves <= 0) return;
      optimizer_.live(halves == 1 ? 0 : MortalOptimizer::kForEver);
      halves -= 2;
      try {
        update.apply(
            block, summed ? gradients(rank).subspan(block.begin, block.size()) : update.sum(block),
            kScalars);
      } catch (const Death&) {
      }
    });
    optimizer_.live(MortalOptimizer::kForEver);
  }

 private:
  static void fill(std::span<float> floats, int stream) {
    Random random(11, static_cast<std::uint64_t>(stream));
    for (float& value : floats) value = static_cast<float>(random.uniform(-1, 1));
  }

  HostReduction::Shape shape_;
  os::PrivateMemory memory_;
  os::PrivateMemory journal_;
  std::vector<std::unique_ptr<HostReduction>> groups_;
  MortalOptimizer optimizer_;
};

constexpr int kAllHalves = 4;  // Two blocks: all that a rank of two owns.

TEST(HostUpdate, OwnersTogetherMakeTheUpdateOfOne) {
  for (const int world : {1, 2, 3}) {
    Host host(world);
    const std::vector<float> wanted = host.floats_after();
    for (int rank = 0; rank < world; ++rank) {
      HostUpdate update = host.update_of(rank);
      std::size_t owned = 0;
      update.begin(kNumber, {.scalars = kScalars});
      update.for_each_block([&](Segment block) {
        update.apply(block, update.sum(block), kScalars);
        owned += block.size();
      });
      EXPECT_EQ(update.bytes_read(), owned * sizeof(float) * static_cast<std::size_t>(world - 1));
    }
    EXPECT_EQ(host.floats(), wanted) << world;
    EXPECT_FALSE(host.update_of(0).finish_begun(kNumber)) << "there is nothing newer";
    EXPECT_EQ(host.update_of(0).finish_begun(kNumber - 1).has_value(), world > 1);
    EXPECT_EQ(host.floats(), wanted) << "all of it was done";
  }
}

TEST(HostUpdate, ARankAloneSumsNothing) {
  Host host(1);
  HostUpdate update = host.update_of(0);
  update.for_each_block([&](Segment block) {
    EXPECT_EQ(update.sum(block).data(), host.gradients(0).data() + block.begin);
    EXPECT_EQ(update.sum_in_place(block).data(), host.gradients(0).data() + block.begin);
  });
}

/// Both ranks have stopped somewhere; `finishers` that do the rest die of it, each one block later
/// than the one before, until one does not.
void expect_finished(int first, int second, bool summed) {
  Host host(2);
  const std::vector<float> before = host.floats();
  const std::vector<float> wanted = host.floats_after();
  for (int rank = 0; summed && rank < 2; ++rank) {
    HostUpdate update = host.update_of(rank);
    update.for_each_block([&](Segment block) { update.sum_in_place(block); });
  }
  host.come(0, first, summed);
  host.come(1, second, summed);
  if (first < 0 && second < 0) {
    EXPECT_FALSE(host.update_of(0).finish_begun(kNumber - 1));
    EXPECT_EQ(host.floats(), before) << "a step that nobody had begun is dropped";
    return;
  }
  for (int finisher = 0;; ++finisher) {
    host.optimizer().live(finisher);
    try {
      const auto begun = host.update_of(finisher % 2).finish_begun(kNumber - 1);
      ASSERT_TRUE(begun);
      EXPECT_EQ(begun->number, kNumber);
      EXPECT_EQ(begun->plan.scalars.step, kScalars.step);
      EXPECT_EQ(begun->plan.summed, summed);
      break;
    } catch (const Death&) {
    }
  }
  EXPECT_EQ(host.floats(), wanted);
}

TEST(HostUpdate, WhatADeadRankHadBegunIsFinishedToTheSameBits) {
  for (int first = -1; first <= kAllHalves; ++first) {
    for (int second = -1; second <= kAllHalves; ++second) {
      SCOPED_TRACE(testing::Message() << "stopped at " << first << " and " << second);
      expect_finished(first, second, false);
    }
  }
}

/// Clipping needs the sums of all before any block changes: they stand in the owners' gradients, and
/// what finishes an update must not sum them again.
TEST(HostUpdate, WhatHadBeenSummedBeforeIsNotSummedAgain) {
  for (const int first : {-1, 0, 1, 2, 3, kAllHalves}) {
    SCOPED_TRACE(first);
    expect_finished(first, 1, true);
  }
}

}  // namespace
}  // namespace cohort::collective
