#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "server/memory/shard_memory.h"
#include "server/shard/row_sum.h"
#include "server/wire/request.h"

namespace cohort {

/// What a push brings to an update.
struct PushedGradients {
  std::span<const float> dense;
  std::span<const RowsPushed> rows;
  double weight = 1;
};

/// The weighted sum of pushes in memory of its owner, for pushes whose workers are answered before
/// the sum is used. Empty at first. There are two areas: a sum that grows is made in the other one,
/// and what it was before stays. Both may be the same. One thread at a time.
class GradientSum {
 public:
  GradientSum(const ShardShape& shape, std::array<KeptArea, 2> areas)
      : shape_(shape), areas_(std::move(areas)) {}

  bool empty() const { return pushes_ == 0; }
  std::size_t pushes() const { return pushes_; }
  std::size_t area() const { return area_; }

  void add(const PushedGradients& push);
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
  std::vector<RowSum> rows_;
  std::vector<RowsPushed> row_views_;
};

}  // namespace cohort
