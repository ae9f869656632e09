// The ring. The buffer is cut into `world` segments; every rank sends only to the next rank and
// receives only from the one before.
//
//        0 ──▶ 1          Reduce-scatter, world 4: segment 2 starts at rank 3, and every rank it
//        ▲     │          passes adds its own part, until its owner, rank 2, has the whole sum:
//        │     ▼
//        3 ◀── 2              3 ──▶ 0 ──▶ 1 ──▶ 2      (all segments do so at once)
//
// All-gather: the owner's segment goes round once more and every rank copies it. So each sum is
// made along one path and is the same bits everywhere.
//
// A rank sends 2 (world - 1) / world of the buffer, which no algorithm can beat, in
// 2 (world - 1) steps: best for large buffers.

#include "collective/algorithms.h"

namespace cohort::collective {
namespace {

/// `world` - 1 steps. In each a rank passes on the segment it got in the step before, so segments
/// are counted backwards from `first_sent`.
std::vector<Step> once_round(int rank, int world, std::size_t count, int first_sent,
                             ActionKind receive) {
  const auto segment = [&](int index) {
    return segment_of(count, world, ((index % world) + world) % world);
  };
  const int next = (rank + 1) % world;
  const int previous = (rank + world - 1) % world;
  std::vector<Step> steps;
  for (int sent = first_sent; sent > first_sent - (world - 1); --sent) {
    Step& step = steps.emplace_back();
    step.add(receive, previous, segment(sent - 1));
    step.add(ActionKind::send, next, segment(sent));
  }
  return steps;
}

}  // namespace

Schedule ring_reduce_scatter(int rank, int world, std::size_t count) {
  return {"ring reduce-scatter",
          once_round(rank, world, count, rank - 1, ActionKind::receive_reduce)};
}

Schedule ring_all_gather(int rank, int world, std::size_t count) {
  return {"ring all-gather", once_round(rank, world, count, rank, ActionKind::receive_copy)};
}

Schedule ring_all_reduce(int rank, int world, std::size_t count) {
  return sequence("ring all-reduce", ring_reduce_scatter(rank, world, count),
                  ring_all_gather(rank, world, count));
}

}  // namespace cohort::collective
