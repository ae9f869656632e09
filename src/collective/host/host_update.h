#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/host/host_reduction.h"
#include "optimizer/optimizer.h"

namespace cohort::collective {

/// The update of a model that the ranks of one host make together in memory they share, each in the
/// part it owns, so that a rank may be killed at any instruction and no step stays half made.
///
/// Vocabulary. What an update *changes* are vectors of floats in the shared area: the parameters,
/// then each optimizer slot. An owner goes through its segment *block* by block, small enough to
/// stay in the cache between the sum of the ranks' gradients and the update. Updates have *numbers*
/// that grow. Before a block changes its owner *keeps* what it was; the *journal* has that and how
/// far every rank has come, in shared memory as well:
///
///   begin ──▶ keep ──▶ (the block changes) ──▶ done ──▶ keep ──▶ …  ──▶ done
///
///   killed …       what whoever is left does with that rank's part
///   before begin   all of it, where another rank has begun; otherwise the step is dropped
///   after keep     puts the block back as it was kept, then changes it
///   after done     goes on with the next block
///
/// All gradients of an update are there before any rank begins it (a barrier), and stay until the
/// next step; so what a dead rank has not done can be done for it, to the same bits.

/// The journal: a line per rank. Every rank writes only its own, and reads others' once they do not
/// write any more: their process has ended, or they wait.
class UpdateJournal {
 public:
  struct Shape {
    int world = 1;
    std::size_t block = 0;    ///< Floats of the largest block.
    std::size_t vectors = 1;  ///< That change together: parameters and slots.
  };

  /// What is needed to make the rest of an update. The same on all ranks.
  struct Plan {
    optimizer::UpdateScalars scalars = {};
    /// Every owner's contribution has the summed gradients in the part it owns.
    bool summed = false;
  };

  struct Progress {
    std::uint64_t number = 0;  ///< Of the last update that the rank has begun; 0: none.
    std::size_t blocks = 0;    ///< That it has done.
    bool in_block = false;     ///< The next one may be half done: kept() has what it was.
    Plan plan = {};            ///< Of that update.
  };

  using Vectors = std::span<const std::span<float>>;

  static std::size_t bytes_needed(const Shape& shape);

  /// `region` is zeroed, 64-byte aligned memory of bytes_needed(shape), the same for all ranks.
  UpdateJournal(int rank, const Shape& shape, std::span<std::byte> region);

  /// `number` is above 0 and below 2^40, and an update has fewer than 2^24 blocks.
  void begin(std::uint64_t number, const Plan& plan);

  /// Before the next block changes. `block` has Shape::vectors vectors of one size.
  void keep(Vectors block);

  /// The block that was kept last has changed.
  void done();

  Progress progress(int rank) const;

  /// For whoever finishes the part of a rank that is gone: as if it were that rank.
  UpdateJournal acting_for(int rank) const { return UpdateJournal(rank, shape_, region_); }

  /// Makes `block` what it was when `rank` kept its last one.
  void restore(int rank, Vectors block) const;

 private:
  /// Both words are number << 24 | blocks. Where `kept` is one ahead, a block is being changed.
  /// Each is written by one store, so whoever is killed has made it or not.
  struct alignas(64) Line {
    std::atomic<std::uint64_t> done;
    std::atomic<std::uint64_t> kept;
    Plan plan;
  };

  // The region: a line per rank, then for each rank room for one block of every vector.
  Line& line(int rank) const;
  float* room(int rank, std::size_t vector) const;

  int rank_;
  Shape shape_;
  std::span<std::byte> region_;
};

/// One rank's part in the updates, and the parts of those who are gone. One thread.
class HostUpdate {
 public:
  /// `group`: its contributions begin with the gradients, `changing.front().size()` floats.
  /// `changing` are vectors of one size. `journal` is zeroed memory of journal_bytes(), the same
  /// for all ranks; empty for a rank alone, who has nobody to finish what it began. Everything must
  /// outlive this.
  HostUpdate(HostReduction& group, std::vector<std::span<float>> changing,
             const optimizer::Optimizer& optimizer, std::span<std::byte> journal);

  static std::size_t journal_bytes(int world, std::size_t floats, std::size_t vectors);

  /// Calls `visit` with each block of the segment that this rank owns, in order.
  template <class Visit>
  void for_each_block(Visit&& visit) const {
    const Blocks blocks(group_.owned(floats()));
    for (std::size_t i = 0; i < blocks.count(); ++i) visit(blocks[i]);
  }

  /// This block of the sum of all gradients, in memory that the next call uses again; of a rank
  /// alone its gradients, where they are. After the barrier that says that all are there.
  std::span<const float> sum(Segment block);
  /// The same into this rank's own gradients: nobody else reads them in the segment it owns.
  std::span<const float> sum_in_place(Segment block);

  /// Before the first block of update `number`; see UpdateJournal::begin.
  void begin(std::uint64_t number, const UpdateJournal::Plan& plan);
  /// Changes one block. All blocks, in the order of for_each_block(), are one update.
  void apply(Segment block, std::span<const float> gradients,
             const optimizer::UpdateScalars& scalars);

  /// When this group of ranks is over and nobody else changes anything: where some rank has begun
  /// an update after number `after`, makes what is missing of it, for all ranks, and tells which it
  /// was. It goes on with the lines of the ranks it acts for, so it may be killed as well and
  /// another one do it again.
  std::optional<UpdateJournal::Progress> finish_begun(std::uint64_t after);

  /// Of others' gradients, so far.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  /// The blocks of a segment; the last one may be shorter.
  class Blocks {
   public:
    explicit Blocks(Segment segment) : segment_(segment) {}
    std::size_t count() const;
    Segment operator[](std::size_t index) const;

   private:
    Segment segment_;
  };

  std::size_t floats() const { return changing_.front().size(); }
  UpdateJournal::Vectors cut(Segment block);
  std::span<const float> sum_into(Segment block, std::span<float> target);
  std::span<const float> sum_for(int rank, Segment block, const UpdateJournal::Plan& plan);
  void finish_part_of(int rank, const UpdateJournal::Progress& begun);

  HostReduction& group_;
  std::vector<std::span<float>> changing_;
  const optimizer::Optimizer& optimizer_;
  std::optional<UpdateJournal> journal_;  // None for a rank alone.
  std::vector<float> scratch_;            // One block of sums.
  std::vector<std::span<float>> parts_;   // What cut() returns.
  std::uint64_t bytes_read_ = 0;
};

}  // namespace cohort::collective
