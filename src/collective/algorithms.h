#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/schedule.h"

namespace cohort::collective {

/// The algorithms: who sends what to whom, as schedules. Each is a pure function of (rank, world,
/// count) and has a file of its own (ring.cc, direct.cc, tree.cc, hosts.cc, dissemination.cc) with
/// its drawing. All ranks of a group must ask for the same algorithm and count: their schedules fit
/// together only then.
///
/// An all-reduce takes
///
///            messages one after the other   sent by a rank, in buffers   best for
///   ring     2 (world - 1)                  2 (world - 1) / world        large buffers
///   direct   2                              2 (world - 1) / world        small ones, few ranks
///   tree     about 2 log2 world             1 to log2 world              small ones, many ranks
///   hosts    2 + 2 (hosts - 1)              see hosts.cc                 several ranks per host
///
/// Every sum is made in one place and copied from there, so all ranks end with the same bits, in
/// every run. With direct the order of a sum is that of the ranks, wherever a number stands.

// Reduce-scatter: rank r ends with the sums of segment_of(count, world, r); the rest of its buffer
// is undefined after a ring and unchanged after direct. All-gather: every rank starts with its own
// segment and ends with all. All-reduce: one, then the other.

Schedule ring_reduce_scatter(int rank, int world, std::size_t count);
Schedule ring_all_gather(int rank, int world, std::size_t count);
Schedule ring_all_reduce(int rank, int world, std::size_t count);

Schedule direct_reduce_scatter(int rank, int world, std::size_t count);
Schedule direct_all_gather(int rank, int world, std::size_t count);
/// The same of any segments, by rank, as long as they do not overlap.
Schedule direct_all_gather_of(int rank, std::span<const Segment> segments);
Schedule direct_all_reduce(int rank, int world, std::size_t count);

/// The root ends with the sums; the buffers of the other ranks are undefined.
Schedule tree_reduce(int rank, int world, std::size_t count, int root);
/// Every rank ends with what the root had.
Schedule tree_broadcast(int rank, int world, std::size_t count, int root);
Schedule tree_all_reduce(int rank, int world, std::size_t count);

/// All-reduce inside the hosts first, then between them. `hosts` has the host of every rank and
/// must satisfy even_hosts().
Schedule hosts_all_reduce(int rank, std::span<const int> hosts, std::size_t count);
/// Whether there are several hosts, and the same number of ranks on each, at least two.
bool even_hosts(std::span<const int> hosts);

/// A barrier of empty messages: no rank ends before every rank has begun.
Schedule dissemination_barrier(int rank, int world);

// The same by the names a job file uses. "auto" picks by the number of ranks and elements. An
// unknown name is an Error(invalid) that lists the known ones.

struct AlgorithmRow {
  std::string name;
  std::string words;  ///< What it is and when it is best, in a sentence for users.
};
/// Without "auto".
std::vector<AlgorithmRow> algorithm_table();

/// ring, direct, tree, auto.
const std::vector<std::string>& all_reduce_algorithms();
Schedule all_reduce_schedule(std::string_view algorithm, int rank, int world, std::size_t count);
/// The same where ranks are on these hosts: "auto" then means hosts_all_reduce() for large buffers
/// on even hosts.
Schedule all_reduce_schedule(std::string_view algorithm, int rank, std::span<const int> hosts,
                             std::size_t count);

/// ring, direct, auto: those that work on a segment per rank.
const std::vector<std::string>& segment_algorithms();
Schedule reduce_scatter_schedule(std::string_view algorithm, int rank, int world,
                                 std::size_t count);
Schedule all_gather_schedule(std::string_view algorithm, int rank, int world, std::size_t count);

}  // namespace cohort::collective
