#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort::optimizer {

/// Update rules: how parameters move by gradients. A rule works on spans of floats, so any part of
/// the flat space can be updated by whoever owns that part: a worker its share of a region, a
/// server its shard. A rule makes of a whole, to the bit, what it makes of its parts.

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
/// (momentum, moments) are *slots*, one more flat buffer each, which the caller owns, keeps zero
/// before the first update and writes to checkpoints. Thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Names of the slots, as checkpoints call them: {} for plain SGD, {"momentum"}, {"m", "v"}.
  virtual std::vector<std::string> slots() const = 0;

  /// Updates parameters[i] by gradients[i] and slots[k][i] for all i. All spans have the same size,
  /// slots come in the order of slots(); Error(invalid) otherwise. None may overlap another.
  virtual void update(std::span<float> parameters, std::span<const float> gradients,
                      std::span<const std::span<float>> slots,
                      const UpdateScalars& scalars) const = 0;
};

/// Clipping, which a caller does before the update by UpdateScalars::gradient_scale: the squares of
/// all gradients of the step are summed, each owner's part first, and clip_scale() of the root is
/// what every part is multiplied by.

/// The sum of squares, in double, in an order that depends on the size only.
double sum_of_squares(std::span<const float> values);

/// What gradients of this norm are multiplied by so that it is at most `clip_norm`; 1 where
/// clipping is off (0). The same small number as torch's clip_grad_norm_ keeps the division
/// defined.
double clip_scale(double norm, double clip_norm);

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

}  // namespace cohort::optimizer
