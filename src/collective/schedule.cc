#include "collective/schedule.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cohort::collective {

// Whole blocks, so that in an aligned buffer of floats no two parts share a cache line; the first
// parts have one block more where they do not come out even.
Segment segment_of(std::size_t count, int parts, int index) {
  constexpr std::size_t block = 16;
  const std::size_t blocks = (count + block - 1) / block;
  const auto part_count = static_cast<std::size_t>(parts);
  const auto begin_of = [&](std::size_t part) {
    const std::size_t longer_parts_before = std::min(part, blocks % part_count);
    return std::min(count, block * (part * (blocks / part_count) + longer_parts_before));
  };
  const auto part = static_cast<std::size_t>(index);
  return {begin_of(part), begin_of(part + 1)};
}

void Step::add(ActionKind kind, int peer, Segment segment) {
  if (!segment.empty()) actions.push_back({kind, peer, segment});
}

Schedule sequence(std::string name, Schedule first, Schedule second) {
  first.name = std::move(name);
  std::move(second.steps.begin(), second.steps.end(), std::back_inserter(first.steps));
  return first;
}

}  // namespace cohort::collective
