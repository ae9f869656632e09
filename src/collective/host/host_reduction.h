#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/elements.h"
#include "collective/host/host_barrier.h"
#include "collective/schedule.h"

namespace cohort {

/// Memory that all ranks of one host share, and the sums they make in it without sending anything.
///
/// Vocabulary. Every rank has a *contribution*, which all others can read; there is one *shared*
/// area per host, which all can read and in which each rank writes only what it *owns*: its segment
/// of the elements. A sum over ranks is always made in the order of the ranks, so it is the same in
/// every run.
///
///   rank 0 writes  [ contribution 0 ]──┐ each rank sums its own segment ┌─▶ [ own 0 | own 1 ]
///   shared rank 1 writes  [ contribution 1 ]──┘ of all contributions           └─▶
///
/// No call makes a copy to be sent; what keeps ranks apart is a barrier before the reading of
/// contributions and one after the writing of the shared area.
class HostReduction {
 public:
  struct Shape {
    int world = 1;
    std::size_t contribution = 0;  ///< Floats every rank contributes.
    std::size_t shared = 0;        ///< Floats there are once per host.
  };

  /// What travels at once in small_sum(), in bytes.
  static constexpr std::size_t kSmallBytes = 32 << 10;

  /// What the ranks need to find together, and the floats: the shared area, then a place for the
  /// contribution of each rank. Where these stand does not depend on how many ranks there are, so
  /// that the floats of one group may be used by the next.
  static std::size_t control_bytes(const Shape& shape);
  static std::size_t floats_bytes(const Shape& shape);
  static std::size_t bytes_needed(const Shape& shape) {
    return control_bytes(shape) + floats_bytes(shape);
  }

  /// `control` is zeroed, and both are 64-byte aligned and the same for all ranks.
  HostReduction(int rank, const Shape& shape, std::span<std::byte> control,
                std::span<std::byte> floats, PeerWatch watch, WaitPolicy policy);

  /// `region` is zeroed, 64-byte aligned memory of bytes_needed(shape), the same for all ranks.
  HostReduction(int rank, const Shape& shape, std::span<std::byte> region, PeerWatch watch,
                WaitPolicy policy);
  /// Leaves: who is not there any more, for whatever reason, is not waited for.
  ~HostReduction() { leave(); }
  HostReduction(const HostReduction&) = delete;
  HostReduction& operator=(const HostReduction&) = delete;

  int rank() const { return rank_; }
  int world() const { return shape_.world; }
  std::span<float> contribution(int rank) const;
  std::span<float> shared() const;

  /// The part of `count` elements that this rank owns.
  Segment owned(std::size_t count) const { return segment_of(count, shape_.world, rank_); }

  void barrier(Deadline deadline, const char* doing) { barrier_.arrive_and_wait(deadline, doing); }

  /// out[i] = sum over all ranks of contribution[segment.begin + i], for contributions that are
  /// complete (after a barrier).
  void sum_contributions(Segment segment, std::span<float> out) const;

  /// The whole all-reduce, in place: rank 0's contribution becomes the sum of all contributions'
  /// first `count` floats, and every rank may read it there.
  std::span<const float> all_reduce(std::size_t count, Deadline deadline);

  /// Replaces the numbers by their sum over the ranks; every rank gets the same bits. For what is
  /// not worth a place among the contributions.
  void small_sum(Numbers numbers, Deadline deadline);

  /// Where this rank writes, and others after the next barrier read, a few doubles per step.
  std::span<double> note(int rank) const;

  /// See HostBarrier::leave.
  void leave() noexcept { barrier_.leave(); }

 private:
  std::span<std::byte> small(int rank) const;
  template <Number T>
  void sum_part(std::span<T> part, Deadline deadline);

  int rank_;
  Shape shape_;
  std::span<std::byte> control_;
  std::span<std::byte> floats_;
  HostBarrier barrier_;
};

}  // namespace cohort
