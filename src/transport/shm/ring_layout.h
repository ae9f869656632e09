#pragma once

#include <cstddef>

#include "os/shared_wait.h"
#include "transport/shm/byte_ring.h"

namespace cohort {

/// What every rank shows to the others.
struct RankState {
  alignas(64) SharedEvent bell;  ///< Rung when a ring from or to the rank has moved.
  alignas(64) std::atomic<std::uint32_t> closed;
};

/// Where things stand in the region of a group: a RankState per rank, the counters of all rings,
/// then the rings' bytes.
///
/// Rings are as large as asked for while all of them together take no more than `kAllRings`. In
/// larger groups only ranks that stand side by side keep such rings, because that is where the ring
/// algorithm sends all it has; the others share what `kAllRings` allows. So a group's memory grows
/// with its ranks and not with their square, also where everybody sends to everybody. Pages that
/// nobody touches cost nothing where the region takes them on use.
class RingLayout {
 public:
  static constexpr std::size_t kAllRings = std::size_t{64} << 20;

  /// `ring_bytes` is a power of two.
  RingLayout(int ranks, std::size_t ring_bytes);

  std::size_t total() const { return total_; }

  RankState& state(std::byte* region, int rank) const;
  RingMemory ring(std::byte* region, int from, int to) const;

 private:
  /// Of the ring within its kind: 0 to the next rank, 1 to the one before; 2: they are not side by
  /// side.
  std::size_t direction(std::size_t from, std::size_t to) const;

  std::size_t ranks_;
  std::size_t near_bytes_;  ///< Of a ring between neighbours.
  std::size_t far_bytes_;
  std::size_t counters_at_;
  std::size_t near_at_;
  std::size_t far_at_;
  std::size_t total_;
};

}  // namespace cohort
