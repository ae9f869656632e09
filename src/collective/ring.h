#pragma once

#include "collective/schedule.h"

namespace cohort {

/// The ring. The buffer is cut into `world` segments; every rank sends only to the next rank and
/// receives only from the one before.
///
///        0 ──▶ 1          Reduce-scatter, world 4: segment 2 starts at rank 3, and every rank it
///        ▲     │          passes adds its own part, until its owner, rank 2, has the whole sum:
///        │     ▼
///        3 ◀── 2              3 ──▶ 0 ──▶ 1 ──▶ 2      (all segments do so at once)
///
/// All-gather: the owner's segment goes round once more and every rank copies it. So each sum is
/// made along one path and is the same bits everywhere.
///
/// A rank sends 2 (world - 1) / world of the buffer, which no algorithm can beat, in
/// 2 (world - 1) steps: best for large buffers.

/// Rank r ends with the sums of segment_of(count, world, r); the rest of its buffer is undefined.
Schedule ring_reduce_scatter(int rank, int world, std::size_t count);

/// Every rank starts with its own segment and ends with all.
Schedule ring_all_gather(int rank, int world, std::size_t count);

Schedule ring_all_reduce(int rank, int world, std::size_t count);

}  // namespace cohort
