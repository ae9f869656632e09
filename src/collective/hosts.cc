// Inside the hosts first, then between them. Every host has the same number of ranks, at least
// two; rank l of each host (counted there) has *lane* l, a segment of the buffer.
//
//   host 0   0 ─── 1      1. reduce-scatter inside the host (direct): rank l has its host's sum of
//            │     │         lane l
//            │     │      2. all-reduce of every lane between the hosts (ring), all lanes at once
//   host 1   2 ─── 3      3. all-gather inside the host (direct)
//
// Between hosts every rank sends 2 (hosts - 1) / hosts of one lane, so a host sends that share of
// the buffer once, however many ranks it has; the ring of all ranks sends almost all of it.

#include "collective/algorithms.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace cohort::collective {
namespace {

using Ranks = std::vector<int>;

/// The ranks of each host, ascending.
std::map<int, Ranks> ranks_by_host(std::span<const int> hosts) {
  std::map<int, Ranks> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    ranks[hosts[rank]].push_back(static_cast<int>(rank));
  }
  return ranks;
}

int place_in(const Ranks& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

/// A schedule made for a few ranks, numbered from 0, and for a part of the buffer that begins at
/// `offset`: the same actions with the numbers of all ranks and places in the whole buffer.
Schedule among(const Ranks& ranks, std::size_t offset, Schedule schedule) {
  for (Step& step : schedule.steps) {
    for (Action& action : step.actions) {
      action.peer = ranks[static_cast<std::size_t>(action.peer)];
      action.segment = {action.segment.begin + offset, action.segment.end + offset};
    }
  }
  return schedule;
}

}  // namespace

Schedule hosts_all_reduce(int rank, std::span<const int> hosts, std::size_t count) {
  const auto by_host = ranks_by_host(hosts);
  const Ranks& inside = by_host.at(hosts[static_cast<std::size_t>(rank)]);
  const int place = place_in(inside, rank);
  const int size = static_cast<int>(inside.size());
  Ranks lane;
  for (const auto& [host, ranks] : by_host) lane.push_back(ranks[static_cast<std::size_t>(place)]);
  std::ranges::sort(lane);  // So that sums are listed by ascending peer.

  const Segment segment = segment_of(count, size, place);
  Schedule between =
      among(lane, segment.begin,
            ring_all_reduce(place_in(lane, rank), static_cast<int>(lane.size()), segment.size()));
  Schedule first =
      sequence("", among(inside, 0, direct_reduce_scatter(place, size, count)), std::move(between));
  return sequence("all-reduce inside hosts and between them", std::move(first),
                  among(inside, 0, direct_all_gather(place, size, count)));
}

bool even_hosts(std::span<const int> hosts) {
  const auto by_host = ranks_by_host(hosts);
  if (by_host.size() < 2) return false;
  const std::size_t size = by_host.begin()->second.size();
  return size >= 2 &&
         std::ranges::all_of(by_host, [&](const auto& host) { return host.second.size() == size; });
}

}  // namespace cohort::collective
