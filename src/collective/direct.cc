// Everyone to everyone. The buffer is cut into `world` segments; segment r is owned by rank r.
//
//        0 ───── 1        Step 1, reduce-scatter: every rank sends each owner its part of the
//        │ ╲   ╱ │        owner's segment; the owner sums all parts in the order of the ranks.
//        │   ╳   │
//        │ ╱   ╲ │        Step 2, all-gather: the owner sends the sum to everyone, so it is made
//        3 ───── 2        in one place and is the same bits everywhere.
//
// The same bytes as the ring in two steps, but world - 1 messages at once: best for small buffers
// and few ranks. The sum does not depend on where a number stands in the buffer.

#include "collective/algorithms.h"

#include <utility>
#include <vector>

namespace cohort::collective {
namespace {

/// Every rank starts with another peer, so that not all send to rank 0 first.
int nth_receiver(int rank, int world, int n) {
  return (rank + 1 + n) % world;
}

}  // namespace

Schedule direct_reduce_scatter(int rank, int world, std::size_t count) {
  Step step;
  for (int peer = 0; peer < world; ++peer) {
    if (peer == rank) continue;
    step.add(ActionKind::receive_reduce, peer, segment_of(count, world, rank));
  }
  for (int n = 0; n < world - 1; ++n) {
    const int peer = nth_receiver(rank, world, n);
    step.add(ActionKind::send, peer, segment_of(count, world, peer));
  }
  return {"direct reduce-scatter", {std::move(step)}};
}

Schedule direct_all_gather_of(int rank, std::span<const Segment> segments) {
  const int world = static_cast<int>(segments.size());
  const auto segment = [&](int of) { return segments[static_cast<std::size_t>(of)]; };
  Step step;
  for (int peer = 0; peer < world; ++peer) {
    if (peer == rank) continue;
    step.add(ActionKind::receive_copy, peer, segment(peer));
  }
  for (int n = 0; n < world - 1; ++n) {
    step.add(ActionKind::send, nth_receiver(rank, world, n), segment(rank));
  }
  return {"direct all-gather", {std::move(step)}};
}

Schedule direct_all_gather(int rank, int world, std::size_t count) {
  std::vector<Segment> segments;
  for (int i = 0; i < world; ++i) segments.push_back(segment_of(count, world, i));
  return direct_all_gather_of(rank, segments);
}

Schedule direct_all_reduce(int rank, int world, std::size_t count) {
  return sequence("direct all-reduce", direct_reduce_scatter(rank, world, count),
                  direct_all_gather(rank, world, count));
}

}  // namespace cohort::collective
