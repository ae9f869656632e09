#pragma once

#include "collective/schedule.h"

namespace cohort {

/// The binomial tree. Ranks are counted from the root (the root is 0); the parent of a rank is the
/// rank without its lowest set bit. The whole buffer travels, in one segment.
///
///            0                 parent of 6 (110) is 4 (100), of 7 (111) is 6 (110);
///       ╱    │    ╲            children of 4 (100) are 5 (101) and 6 (110).
///      4     2     1
///     ╱ ╲    │
///    6   5   3                 Reduce: a rank adds up what its children send, then sends to its
///    │                         parent. Broadcast: it receives from its parent, then sends to its
///    7                         children.
///
/// All-reduce is a reduce to rank 0 and a broadcast from it: every sum is made in one place. About
/// 2 log2(world) messages one after the other, but every one of the whole buffer: best for small
/// buffers and many ranks.

/// The root ends with the sums; the buffers of the other ranks are undefined.
Schedule tree_reduce(int rank, int world, std::size_t count, int root);

/// Every rank ends with what the root had.
Schedule tree_broadcast(int rank, int world, std::size_t count, int root);

Schedule tree_all_reduce(int rank, int world, std::size_t count);

}  // namespace cohort
