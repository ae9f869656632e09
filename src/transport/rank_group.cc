#include "transport/rank_group.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/fail.h"

namespace cohort::transport {

RankGroup::RankGroup(std::span<const int> ranks, int rank, int world)
    : ranks_(ranks.begin(), ranks.end()) {
  const std::set<int> different(ranks.begin(), ranks.end());
  const auto mine = std::ranges::find(ranks_, rank);
  const bool of_world = !ranks.empty() && *different.begin() >= 0 && *different.rbegin() < world;
  if (!of_world || different.size() != ranks.size() || mine == ranks_.end()) {
    fail(ErrorCode::invalid,
         "ranks [{}] are no group for rank {} of {}: it needs different ranks of these, and that "
         "one among them",
         fmt::join(ranks_, ", "), rank, world);
  }
  rank_ = static_cast<int>(mine - ranks_.begin());
}

std::vector<int> RankGroup::hosts_among(const std::vector<int>& by_rank) const {
  std::map<int, int> numbers;
  std::vector<int> hosts;
  for (const int host : part_of(by_rank)) {
    hosts.push_back(numbers.emplace(host, static_cast<int>(numbers.size())).first->second);
  }
  return hosts;
}

std::string GroupKeys::next(const RankGroup& group) {
  return fmt::format("group/{}/{}/", fmt::join(group.ranks(), "-"), made_[group.ranks()]++);
}

int Mesh::size(Axis axis) const {
  if (axis == Axis::data) return data;
  return axis == Axis::pipeline ? pipeline : tensor;
}

Mesh::Place Mesh::place_of(int rank) const {
  return {.data = rank / (tensor * pipeline),
          .pipeline = rank / tensor % pipeline,
          .tensor = rank % tensor};
}

int Mesh::rank_at(const Place& place) const {
  return (place.data * pipeline + place.pipeline) * tensor + place.tensor;
}

std::vector<int> Mesh::line(int rank, Axis axis) const {
  Place place = place_of(rank);
  int& moving = axis == Axis::data       ? place.data
                : axis == Axis::pipeline ? place.pipeline
                                         : place.tensor;
  std::vector<int> ranks;
  for (moving = 0; moving < size(axis); ++moving) ranks.push_back(rank_at(place));
  return ranks;
}

void Mesh::check(int world) const {
  const bool positive = data >= 1 && pipeline >= 1 && tensor >= 1;
  const auto ranks = static_cast<long long>(data) * pipeline * tensor;
  if (positive && data <= world && pipeline <= world && tensor <= world && ranks == world) return;
  fail(ErrorCode::invalid, "a mesh of {} x {} x {} (data, pipeline, tensor) is not one of {} ranks",
       data, pipeline, tensor, world);
}

}  // namespace cohort::transport
