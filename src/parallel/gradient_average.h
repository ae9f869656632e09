#pragma once

#include <cohort/data_parallel.h>

#include <memory>
#include <vector>

#include "parallel/gradient_memory.h"
#include "parallel/step_turns.h"

namespace cohort::parallel {

/// How flat gradients become their weighted sum over the ranks: by all-reduces of the group, by
/// all-reduces of what a codec leaves of them, or in a program's own way.
///
/// One object per DataParallel; all ranks make the same calls.
class GradientAverage {
 public:
  virtual ~GradientAverage() = default;

  /// `flats` are the same tensors in every call. After it each is the sum of all ranks' by their
  /// weights, the same bits on all.
  virtual void average(const std::vector<torch::Tensor>& flats, const Weights& weights) = 0;
};

/// Throws Error(invalid) for options that do not go together, or name no codec there is.
void check_options(const DataParallelOptions& options);

/// As the options say, which are checked.
std::unique_ptr<GradientAverage> make_gradient_average(const Group& group,
                                                       const DataParallelOptions& options,
                                                       const GradientMemory& memory);

}  // namespace cohort::parallel
