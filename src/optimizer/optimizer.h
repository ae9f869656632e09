#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort {

/// What a step's update needs besides the numbers themselves.
///
/// An update may be only a *share* of a step, because a part of the step's batch made it. Its
/// gradients then still have the size of those of a whole step, and it moves the parameters by that
/// share of what a whole step would: of the gradient, of the weight decay, of a step that has a
/// size of its own (adam). So updates whose shares add up to n move the parameters by n steps,
/// however they are cut, and slots have the size they have after whole steps (Adam's are means over
/// updates, of gradients of that size).
struct UpdateScalars {
  double lr = 0;
  std::int64_t step = 1;      ///< 1 for the first update; Adam corrects its bias by it.
  double gradient_scale = 1;  ///< Gradients are multiplied by it first (clipping).
  double share = 1;           ///< Of a step; above 0.
};

/// A rule that updates floats in place in one pass. It has no state of its own: what it remembers
/// (momentum, moments) are *slots*, one more flat buffer each, which the caller owns. So any part
/// of the flat space can be updated by whoever owns that part. Thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Names of the slots, as checkpoints call them: {} for plain SGD, {"momentum"}, {"m", "v"}.
  virtual std::vector<std::string> slots() const = 0;

  /// Updates parameters[i] by gradients[i] and slots[k][i] for all i. All have the same size.
  /// Slots are zero before the first update.
  virtual void update(std::span<float> parameters, std::span<const float> gradients,
                      std::span<const std::span<float>> slots,
                      const UpdateScalars& scalars) const = 0;
};

/// The same rule for whoever gets gradients to which momentum is applied already. Weight decay then
/// no longer goes through the velocity, which adds up 1/(1-momentum) of it.
OptimizerOptions without_momentum(OptimizerOptions options);

/// What others may know of a kind of optimizer without making one.
struct OptimizerRow {
  std::string name;
  std::vector<std::string> keys;  ///< Of `[train.optimizer]`, that it reads beside lr.
  std::string words;
};
std::vector<OptimizerRow> optimizer_table();

/// Throws Error(invalid) for an unknown kind (naming the nearest) or a number out of range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

}  // namespace cohort
