#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace cohort::transport {

/// Groups of ranks (Engine::group): what one is, for the authors of engines, and which ones a
/// training that cuts its model will want (Mesh). Pure arithmetic on ranks.
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

/// Which way the ranks of a group differ.
enum class Axis { data, pipeline, tensor };

/// The ranks of a world in a block of three sides: those that differ in *data* alone see different
/// samples with the same part of the model; in *pipeline*, different layers; in *tensor*, different
/// parts of the same layers. Tensor places are next to each other, then pipeline, then data, since
/// ranks with neighbouring numbers are most often on one host and the innermost talk the most.
///
///   {data 2, pipeline 2, tensor 2}          data 0         data 1
///                                          tensor ──▶     tensor ──▶
///                              pipeline      0 1            4 5
///                                 ▼          2 3            6 7
///
/// The same on every rank. A line of it is a group of ranks: what Engine::group()
/// takes. No job has a mesh yet: this is the seam for pipelines and tensor-parallel layers.
struct Mesh {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;

  struct Place {
    int data = 0;
    int pipeline = 0;
    int tensor = 0;

    bool operator==(const Place&) const = default;
  };

  int world() const { return data * pipeline * tensor; }
  int size(Axis axis) const;

  Place place_of(int rank) const;
  int rank_at(const Place& place) const;

  /// The ranks that differ from this one along the axis alone, itself among them, in their order
  /// there: what Engine::group takes.
  std::vector<int> line(int rank, Axis axis) const;

  /// Throws Error(invalid) unless every side is at least 1 and all together are `world` ranks.
  void check(int world) const;
};

}  // namespace cohort::transport
