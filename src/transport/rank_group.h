#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace cohort::transport {

/// For the authors of engines: what a group of ranks (Engine::group) is.
///
///   world      0   1   2   3   4   5
///   ranks     {4, 1, 3}                 asked for by ranks 1, 3 and 4, each with the same list
///   group      0   1   2                rank 4 of the world is rank 0 of the group
///
/// The members meet in the store under keys that only they use (GroupKeys). Nobody else hears of
/// it: two groups that have no rank in common can be made at the same time.

/// Some ranks of a world, in the order in which they are the ranks of a group.
class RankGroup {
 public:
  /// Throws Error(invalid) unless the ranks are of this world, none is there twice, and `rank`, who
  /// makes the group, is one of them.
  RankGroup(std::span<const int> ranks, int rank, int world);

  /// Of the maker, within the group.
  int rank() const { return rank_; }
  int world() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }

  /// Of what each rank of the world has, what those of the group have.
  template <class T>
  std::vector<T> part_of(const std::vector<T>& by_rank) const {
    std::vector<T> part;
    for (const int rank : ranks_) part.push_back(by_rank[static_cast<std::size_t>(rank)]);
    return part;
  }

  /// The same of their hosts, counted from 0 again.
  std::vector<int> hosts_among(const std::vector<int>& by_rank) const;

 private:
  std::vector<int> ranks_;
  int rank_ = -1;
};

/// Keys under which members of groups find each other: "group/4-1-3/0/", the ranks of the group and
/// how many groups of the same ranks in the same order there were before, which its members count
/// alike. One of these belongs to each engine of each rank.
class GroupKeys {
 public:
  std::string next(const RankGroup& group);

 private:
  std::map<std::vector<int>, int> made_;  // By ranks: how many.
};

}  // namespace cohort::transport
