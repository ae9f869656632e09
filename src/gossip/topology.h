#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::gossip {

/// Who sends to whom. Pure arithmetic on (rank, world, turn, seed); a *turn* is one sending of one
/// worker, counted by itself, so no two workers have to agree on it.
///
///   all           every other rank, every turn
///   ring          turn 0: 0 ▶ 1 ▶ 2 ▶ 3 ▶ 0     turn 1: 0 ◀ 1 ◀ 2 ◀ 3 ◀ 0     turn 2 as turn 0 …
///   random        one other rank, even over all of them
///   exponential   1 ahead, then 2 ahead, 4, 8, … and again from 1: after log2(world) turns
///                 everybody has heard of everybody
enum class Topology { all, ring, random, exponential };

struct TopologyRow {
  std::string name;  ///< In job files.
  Topology topology;
  std::string words;
};
const std::vector<TopologyRow>& topology_table();

/// Throws Error(invalid) for an unknown name.
Topology topology_named(std::string_view name);

/// Where one worker stands.
struct GossipPlace {
  int rank = 0;
  int world = 1;
  std::uint64_t seed = 0;  ///< Of the job, for random.
};

/// The ranks that `place` sends to in its turn `turn`: each once, never itself, none where it is
/// alone.
std::vector<int> neighbours(Topology topology, const GossipPlace& place, std::uint64_t turn);

/// All ranks that are neighbours in some turn, ascending.
std::vector<int> targets_of(Topology topology, int rank, int world);

/// All ranks that have `rank` among their targets, ascending.
std::vector<int> sources_of(Topology topology, int rank, int world);

}  // namespace cohort::gossip
