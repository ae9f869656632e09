#include "collective/dissemination.h"

namespace cohort {

Schedule dissemination_barrier(int rank, int world) {
  Schedule schedule{"barrier", {}};
  for (int distance = 1; distance < world; distance *= 2) {
    schedule.steps.push_back(
        {{{ActionKind::receive_copy, (rank + world - distance) % world, Segment{}},
          {ActionKind::send, (rank + distance) % world, Segment{}}}});
  }
  return schedule;
}

}  // namespace cohort
