#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/memory/shard_memory.h"
#include "server/wire/request.h"

namespace cohort::server {

/// Sums of pushes: what several workers have pushed becomes one gradient.
///
///   Aggregate    dense floats of pushes that are all here now; never written down as a whole
///   RowSum       rows of a table, of pushes that touch different rows of it
///   GradientSum  both, of pushes whose workers are answered before the sum is used
///
/// All of them add in the order in which they are given their parts, in single precision, so that
/// the same pushes in the same order give the same bits. Nothing here checks sizes or row numbers:
/// check_request() has done so. All are used by the one thread that uses the shard.

/// One push's part of a sum.
struct Contribution {
  std::span<const float> values;
  double weight = 1;
};

/// The weighted sum of contributions of equal size, in their order, made block by block so that a
/// block is still in the cache when it is used. What all contributions are multiplied by alike is
/// left to whoever uses the sum: so most sums need no multiplication, and one contribution alone is
/// not even copied.
class Aggregate {
 public:
  /// There is at least one contribution; they stay where they are for as long as this lives.
  explicit Aggregate(std::span<const Contribution> contributions);

  std::size_t size() const { return contributions_.front().values.size(); }

  /// The sum is scale() times what block() gives.
  double scale() const { return scale_; }

  /// `count` floats from `begin`: in `scratch`, or where they stand anyway.
  std::span<const float> block(std::size_t begin, std::size_t count,
                               std::span<float> scratch) const;

 private:
  std::span<const Contribution> contributions_;
  double scale_ = 1;
  bool equal_weights_ = true;
};

/// Gradients of some rows of a table, by their number in the whole table.
struct RowGradients {
  std::span<const std::uint32_t> rows;  ///< Ascending, each once.
  std::span<const float> values;        ///< rows.size() rows.
  double weight = 1;
};

/// The weighted sum of several pushes' rows: every row that one of them has, once.
class RowSum {
 public:
  RowSum() = default;  ///< Of no rows.

  /// Sums in the order of `parts`; `width` is that of a row. Keeps a copy.
  RowSum(std::span<const RowGradients> parts, std::size_t width);

  /// Views of this object, ascending, with weight 1: the weights are in the values.
  RowGradients gradients() const { return {.rows = rows_, .values = values_}; }

 private:
  void add(const RowGradients& part, std::size_t width);

  std::vector<std::uint32_t> rows_;
  std::vector<float> values_;
};

/// What a push brings to an update.
struct PushedGradients {
  std::span<const float> dense;
  std::span<const RowsPushed> rows;
  double weight = 1;
};

/// The weighted sum of pushes in memory of its owner, for pushes whose workers are answered before
/// the sum is used. Empty at first.
///
/// There are two areas: a sum that grows is made in the other one, and what it was before stays.
/// So the commit that follows can name the area to be found after a crash, and a kill between the
/// two leaves the sum of the commit before. Both may be the same, where a sum that is lost with its
/// server counts for nothing.
class GradientSum {
 public:
  GradientSum(const ShardShape& shape, std::array<KeptArea, 2> areas)
      : shape_(shape), areas_(std::move(areas)) {}

  bool empty() const { return pushes_ == 0; }
  std::size_t pushes() const { return pushes_; }
  /// Which of the two areas has the sum: what ShardRecord::kept_area is to say.
  std::size_t area() const { return area_; }

  void add(const PushedGradients& push);
  /// Forgets the sum; the areas keep their floats, which the next add() overwrites.
  void clear();
  /// Takes up what another sum left in the memory.
  void restore(std::size_t area, std::size_t pushes);

  /// Valid until the next change.
  PushedGradients gradients() const;
  double square_sum() const;

 private:
  void add_dense(std::span<const float> dense, float weight);
  void write_rows();
  void make_views();

  ShardShape shape_;
  std::array<KeptArea, 2> areas_;
  std::size_t area_ = 0;
  std::size_t pushes_ = 0;
  std::vector<RowSum> rows_;           // By table; in memory that lasts a copy is in the area.
  std::vector<RowsPushed> row_views_;  // Of those tables that have any.
};

}  // namespace cohort::server
