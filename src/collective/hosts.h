#pragma once

#include <span>

#include "collective/schedule.h"

namespace cohort {

/// Inside the hosts first, then between them. Every host has the same number of ranks, at least
/// two; rank l of each host (counted there) has *lane* l, a segment of the buffer.
///
///   host 0   0 ─── 1      1. reduce-scatter inside the host (direct): rank l has its host's sum of
///            │     │         lane l
///            │     │      2. all-reduce of every lane between the hosts (ring), all lanes at once
///   host 1   2 ─── 3      3. all-gather inside the host (direct)
///
/// Between hosts every rank sends 2 (hosts - 1) / hosts of one lane, so a host sends that share of
/// the buffer once, however many ranks it has; the ring of all ranks sends almost all of it.
///
/// `hosts` has the host of every rank; see even_hosts().
Schedule hosts_all_reduce(int rank, std::span<const int> hosts, std::size_t count);

/// Whether there are several hosts, and the same number of ranks on each, at least two.
bool even_hosts(std::span<const int> hosts);

}  // namespace cohort
