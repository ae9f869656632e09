#pragma once

#include <cohort/error.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "collective/elements.h"
#include "collective/schedule.h"
#include "os/peer_watch.h"
#include "os/shared_wait.h"

namespace cohort::collective {

/// A barrier between the ranks of one host, in memory they share. Every rank has a cache line in
/// which it counts its arrivals; to pass, a rank waits until all the others' counts have reached
/// its own. So whoever waits in vain can name the ranks that are missing.
///
/// Who waits looks at all that have not arrived, not only at the one it waits for: one of them that
/// died or left will never come, and those that live may not either, because of it. A rank that
/// died after it had arrived is in nobody's way here: the next barrier misses it.
class HostBarrier {
 public:
  static std::size_t bytes_needed(int world);

  /// `region` is zeroed memory shared by all ranks, 64-byte aligned. `watch` may be empty where
  /// ranks are threads of one process.
  HostBarrier(int rank, int world, std::span<std::byte> region, os::PeerWatch watch,
              os::WaitPolicy policy);

  /// Returns when every rank has called it as often as this one. Throws Error(timeout) naming all
  /// missing ranks, or Error(peer_lost) naming the one that is gone, and `doing`; from then on
  /// every call throws Error(peer_lost).
  void arrive_and_wait(Deadline deadline, const char* doing);

  /// Tells the others that this rank will not come again: their waits end with Error(peer_lost), and
  /// its own, in another thread, with Error(cancelled).
  void leave() noexcept;

 private:
  /// Written by its rank only.
  struct alignas(64) Line {
    std::atomic<std::uint32_t> arrivals;
    std::atomic<std::uint32_t> left;  ///< Not 0: it will not come again.
    os::SharedEvent event;            ///< Told of every change of the two.
  };

  void wait_for(int peer, Deadline deadline, const char* doing);
  void look_for_the_lost(const char* doing);
  bool has_left(int peer) const;
  [[noreturn]] void give_up(ErrorCode code, int peer, const char* doing);
  bool has_arrived(int peer) const;

  int rank_;
  std::span<Line> lines_;
  os::PeerWatch watch_;
  os::SharedWait wait_;
  std::uint32_t arrivals_ = 0;  // Of this rank; wraps around.
  std::string failure_;         // What every call says once one has failed,
  int failed_rank_ = -1;        // and about whom; -1: none has.
};

/// Memory that all ranks of one host share, and the sums they make in it without sending anything.
///
/// Vocabulary. Every rank has a *contribution*, which all others can read; there is one *shared*
/// area per host, which all can read and in which each rank writes only what it *owns*: its segment
/// of the elements. A sum over ranks is always made in the order of the ranks, so it is the same in
/// every run.
///
///   floats    [ shared: segment 0 | segment 1 | … ] [ contribution 0 ] [ contribution 1 ] …
///   written by          rank 0      rank 1            rank 0             rank 1
///   control   [ barrier: a line per rank ] [ notes per rank ] [ small messages per rank ]
///
/// No call makes a copy to be sent; what keeps ranks apart is a barrier before the reading of
/// contributions and one after the writing of the shared area. One object per rank, used by one
/// thread; the memory must outlive it. All ranks make the same calls of barrier(), all_reduce() and
/// small_sum(), which throw as HostBarrier::arrive_and_wait() does.
class HostReduction {
 public:
  struct Shape {
    int world = 1;
    std::size_t contribution = 0;  ///< Floats every rank contributes.
    std::size_t shared = 0;        ///< Floats there are once per host.
  };

  /// What travels at once in small_sum(), in bytes.
  static constexpr std::size_t kSmallBytes = 32 << 10;

  /// Two pieces of memory: *control*, which is new for every group of ranks, and *floats*, the
  /// shared area and then a place for the contribution of each rank. Where these stand does not
  /// depend on how many ranks there are, so that the floats of one group may be used by the next.
  static std::size_t control_bytes(const Shape& shape);
  static std::size_t floats_bytes(const Shape& shape);
  static std::size_t bytes_needed(const Shape& shape) {
    return control_bytes(shape) + floats_bytes(shape);
  }

  /// `control` is zeroed, and both are 64-byte aligned and the same for all ranks.
  HostReduction(int rank, const Shape& shape, std::span<std::byte> control,
                std::span<std::byte> floats, os::PeerWatch watch, os::WaitPolicy policy);

  /// `region` is zeroed, 64-byte aligned memory of bytes_needed(shape), the same for all ranks.
  HostReduction(int rank, const Shape& shape, std::span<std::byte> region, os::PeerWatch watch,
                os::WaitPolicy policy);
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

  /// 8 doubles per rank: what a rank writes to its own others read after the next barrier.
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

}  // namespace cohort::collective
