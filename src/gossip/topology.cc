#include "gossip/topology.h"

#include <algorithm>
#include <bit>

#include "base/names.h"
#include "base/random.h"

namespace cohort::gossip {
namespace {

std::vector<int> all_but(int rank, int world) {
  std::vector<int> others;
  for (int other = 0; other < world; ++other) {
    if (other != rank) others.push_back(other);
  }
  return others;
}

// The number of different distances of the exponential topology: the logarithm, rounded up.
int distances(int world) {
  return std::bit_width(static_cast<unsigned>(world - 1));
}

// A pure function of worker and turn: the same in every run with this seed, and nothing that has to be
// saved for it.
int random_other(const GossipPlace& place, std::uint64_t turn) {
  const auto world = static_cast<std::uint64_t>(place.world);
  Random random(place.seed, turn * world + static_cast<std::uint64_t>(place.rank));
  const int other = static_cast<int>(random.below(world - 1));
  return other < place.rank ? other : other + 1;
}

}  // namespace

const std::vector<TopologyRow>& topology_table() {
  static const std::vector<TopologyRow> rows = {
      {"all", Topology::all, "every other worker, every turn"},
      {"ring", Topology::ring, "the next one, then the one before, in turns"},
      {"random", Topology::random, "one other worker, any"},
      {"exponential", Topology::exponential, "1 ahead, then 2, 4, 8, … and again from 1"},
  };
  return rows;
}

Topology topology_named(std::string_view name) {
  return row_named("topology", name, topology_table()).topology;
}

std::vector<int> neighbours(Topology topology, const GossipPlace& place, std::uint64_t turn) {
  const auto [rank, world, seed] = place;
  if (world <= 1) return {};
  switch (topology) {
    case Topology::all:
      return all_but(rank, world);
    case Topology::ring:
      return {(rank + (turn % 2 == 0 ? 1 : world - 1)) % world};
    case Topology::random:
      return {random_other(place, turn)};
    case Topology::exponential: {
      const auto power = turn % static_cast<std::uint64_t>(distances(world));
      return {(rank + (1 << power)) % world};
    }
  }
  return {};
}

// All that a worker will ever send to: those it needs boxes and connections to. And sources_of() is
// the other end of the same, so that both ends of a box agree that there is one without asking.
std::vector<int> targets_of(Topology topology, int rank, int world) {
  if (topology == Topology::random) return all_but(rank, world);
  // The others come round: what they do in as many turns as they have distances, they do for ever.
  const int turns = std::max(2, distances(std::max(world, 2)));
  std::vector<int> targets;
  for (int turn = 0; turn < turns; ++turn) {
    const auto some =
        neighbours(topology, {.rank = rank, .world = world}, static_cast<std::uint64_t>(turn));
    targets.insert(targets.end(), some.begin(), some.end());
  }
  std::ranges::sort(targets);
  const auto rest = std::ranges::unique(targets);
  targets.erase(rest.begin(), rest.end());
  return targets;
}

std::vector<int> sources_of(Topology topology, int rank, int world) {
  std::vector<int> sources;
  for (int other = 0; other < world; ++other) {
    if (std::ranges::binary_search(targets_of(topology, other, world), rank)) {
      sources.push_back(other);
    }
  }
  return sources;
}

}  // namespace cohort::gossip
