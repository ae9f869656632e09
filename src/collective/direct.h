#pragma once

#include <span>

#include "collective/schedule.h"

namespace cohort {

/// Everyone to everyone. The buffer is cut into `world` segments; segment r is owned by rank r.
///
///        0 ───── 1        Step 1, reduce-scatter: every rank sends each owner its part of the
///        │ ╲   ╱ │        owner's segment; the owner sums all parts in the order of the ranks.
///        │   ╳   │
///        │ ╱   ╲ │        Step 2, all-gather: the owner sends the sum to everyone, so it is made
///        3 ───── 2        in one place and is the same bits everywhere.
///
/// The same bytes as the ring in two steps, but world - 1 messages at once: best for small buffers
/// and few ranks. The sum does not depend on where a number stands in the buffer.

/// Rank r ends with the sums of segment_of(count, world, r); the rest of its buffer is unchanged.
Schedule direct_reduce_scatter(int rank, int world, std::size_t count);

/// Every rank starts with its own segment and ends with all.
Schedule direct_all_gather(int rank, int world, std::size_t count);
/// The same of any segments, by rank.
Schedule direct_all_gather_of(int rank, std::span<const Segment> segments);

Schedule direct_all_reduce(int rank, int world, std::size_t count);

}  // namespace cohort
