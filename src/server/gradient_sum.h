#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/private_memory.h"
#include "server/request.h"
#include "server/row_sum.h"
#include "server/shard.h"

namespace cohort {

/// What a push brings to an update.
struct PushedGradients {
  std::span<const float> dense;
  std::span<const RowsPushed> rows;
  double weight = 1;
};

/// The weighted sum of pushes in memory of its own, for pushes whose workers are answered before
/// the sum is used. Empty at first. One thread at a time.
class GradientSum {
 public:
  explicit GradientSum(const ShardShape& shape) : shape_(shape) {}

  bool empty() const { return pushes_ == 0; }
  std::size_t pushes() const { return pushes_; }

  void add(const PushedGradients& push);
  void clear();

  /// Valid until the next change.
  PushedGradients gradients() const;
  double square_sum() const;

 private:
  ShardShape shape_;
  std::size_t pushes_ = 0;
  PrivateMemory dense_;  // Reserved by the first push, and kept.
  std::vector<RowSum> rows_;
  std::vector<RowsPushed> row_views_;
};

}  // namespace cohort
