#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace cohort {

/// A group of workers that train together, from one change of membership to the next. A worker is
/// known by its number, which stays; its rank is its place in the view, and the one with rank 0 is
/// the chief.
struct View {
  std::int64_t epoch = 0;         ///< Counts the views of a run from 1.
  std::vector<int> workers = {};  ///< By rank.
  bool closing = false;           ///< The group only saves what it has; then the run ends.

  int world() const { return static_cast<int>(workers.size()); }
  std::optional<int> rank_of(int worker) const {
    const auto place = std::ranges::find(workers, worker);
    if (place == workers.end()) return std::nullopt;
    return static_cast<int>(place - workers.begin());
  }

  bool operator==(const View&) const = default;
};

}  // namespace cohort
