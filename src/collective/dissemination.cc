// The dissemination barrier (Hensgen, Finkel and Manber 1988). In step k a rank tells the rank 2^k
// further that it, and all it has heard of, are there. Messages are empty: that one has come is all
// it says.
//
//    step 0:   0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 4 ─▶ 0          Everybody has heard of 2 ranks,
//    step 1:   0 ─▶ 2 ─▶ 4 ─▶ 1 ─▶ 3 ─▶ 0          of 4,
//    step 2:   0 ─▶ 4 ─▶ 3 ─▶ 2 ─▶ 1 ─▶ 0          of all 5.
//
// So after log2(world) steps, rounded up, nobody ends before all have begun.

#include "collective/algorithms.h"

namespace cohort::collective {

Schedule dissemination_barrier(int rank, int world) {
  Schedule schedule{"barrier", {}};
  for (int distance = 1; distance < world; distance *= 2) {
    // Not by Step::add(), which leaves empty segments out.
    schedule.steps.push_back(
        {{{ActionKind::receive_copy, (rank + world - distance) % world, Segment{}},
          {ActionKind::send, (rank + distance) % world, Segment{}}}});
  }
  return schedule;
}

}  // namespace cohort::collective
