#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "optimizer/optimizer.h"

namespace cohort {

/// Notes about an update that the ranks of one host make together in memory they share, each in the
/// part it owns, block after block. The notes are in shared memory as well, so when a rank dies in
/// the middle, at whatever instruction, those who are left know what to finish and how.
///
/// Vocabulary. Updates have *numbers* that grow. A rank *keeps* what a block was before it changes
/// it. Every rank writes only notes of its own, and reads others' once they do not write any more.
///
///   begin ──▶ keep ──▶ (the block changes) ──▶ done ──▶ keep ──▶ …
class UpdateJournal {
 public:
  struct Shape {
    int world = 1;
    std::size_t block = 0;    ///< Floats of the largest block.
    std::size_t vectors = 1;  ///< That change together: parameters and slots.
  };

  /// What is needed to make the rest of an update.
  struct Plan {
    UpdateScalars scalars = {};
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
  struct alignas(64) Line {
    std::atomic<std::uint64_t> done;
    std::atomic<std::uint64_t> kept;
    Plan plan;
  };

  Line& line(int rank) const;
  float* room(int rank, std::size_t vector) const;

  int rank_;
  Shape shape_;
  std::span<std::byte> region_;
};

}  // namespace cohort
