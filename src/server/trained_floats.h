#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/private_memory.h"
#include "optimizer/optimizer.h"
#include "server/aggregate.h"

namespace cohort {

/// Parameters with their optimizer slots: zero at first. One thread at a time.
class TrainedFloats {
 public:
  /// The optimizer must outlive it.
  TrainedFloats(std::size_t count, const Optimizer& optimizer);

  std::span<float> values() const { return values_.floats(); }

  /// Updates gradients.size() floats from `offset`; the others stay as they are.
  void update_part(std::size_t offset, std::span<const float> gradients,
                   const UpdateScalars& scalars);

  struct Update {
    UpdateScalars scalars;
    bool want_norm = false;
    std::span<const std::span<float>> copies = {};  ///< Each gets the updated floats.
  };

  /// One pass over all floats: sum, update and copies of one piece after the other. Returns the sum
  /// of squares of the gradients (before `gradient_scale`) where the norm is wanted.
  double update(const Aggregate& gradients, const Update& update);

 private:
  const Optimizer& optimizer_;
  PrivateMemory values_;
  std::vector<PrivateMemory> slots_;
  std::vector<float> scratch_;
  std::vector<std::span<float>> part_slots_;
};

}  // namespace cohort
