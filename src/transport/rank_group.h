#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace cohort {

/// Some ranks of a world, in the order in which they are the ranks of a group.
class RankGroup {
 public:
  /// Throws Error(invalid) unless the ranks are of this world, none is there twice, and `rank`, who
  /// makes the group, is one of them.
  RankGroup(std::span<const int> ranks, int rank, int world);

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

/// Keys under which members of groups find each other: the ranks of the group, and how many groups
/// of the same ranks there were before, which its members count alike.
class GroupKeys {
 public:
  std::string next(const RankGroup& group);

 private:
  std::map<std::vector<int>, int> made_;
};

}  // namespace cohort
