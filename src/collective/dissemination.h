#pragma once

#include "collective/schedule.h"

namespace cohort {

/// A barrier: no rank ends before every rank has begun. In step k a rank tells the rank 2^k further
/// that it, and all it has heard of, are there; the messages are empty.
///
///    step 0:   0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 4 ─▶ 0          Everybody has heard of 2 ranks,
///    step 1:   0 ─▶ 2 ─▶ 4 ─▶ 1 ─▶ 3 ─▶ 0          of 4,
///    step 2:   0 ─▶ 4 ─▶ 3 ─▶ 2 ─▶ 1 ─▶ 0          of all 5.
Schedule dissemination_barrier(int rank, int world);

}  // namespace cohort
