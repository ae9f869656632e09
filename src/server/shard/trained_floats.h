#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "optimizer/optimizer.h"
#include "server/memory/shard_memory.h"
#include "server/shard/aggregate.h"

namespace cohort {

/// Parameters with their optimizer slots, in memory of their owner. One thread at a time.
class TrainedFloats {
 public:
  /// The optimizer must outlive it.
  TrainedFloats(const DenseArea& area, const Optimizer& optimizer);

  const FloatsArea& floats() const { return area_.now; }
  std::span<float> values() const { return area_.now.values; }

  /// Updates gradients.size() floats from `offset`; the others stay as they are. Saves nothing.
  void update_part(std::size_t offset, std::span<const float> gradients,
                   const UpdateScalars& scalars);

  struct Update {
    UpdateScalars scalars;
    bool want_norm = false;
    std::span<const std::span<float>> copies = {};  ///< Each gets the updated floats.
  };

  /// One pass over all floats: sum, update and copies of one piece after the other, each saved
  /// before in memory that lasts. Returns the sum of squares of the gradients (before
  /// `gradient_scale`) where the norm is wanted.
  double update(const Aggregate& gradients, const Update& update);

 private:
  const Optimizer& optimizer_;
  DenseArea area_;
  std::vector<float> scratch_;
  std::vector<std::span<float>> part_slots_;
};

}  // namespace cohort
