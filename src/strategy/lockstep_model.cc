#include "strategy/lockstep_model.h"

#include <algorithm>
#include <cmath>

#include "optimizer/square_sum.h"

namespace cohort {

LockstepModel::LockstepModel(const StrategyContext& context)
    : layout_(ModelLayout::of(context.model)),
      floats_(layout_.parameters.size),
      rank_(static_cast<std::size_t>(context.engine.rank())),
      world_(static_cast<std::size_t>(context.engine.world())),
      sums_(context),
      parameters_((floats_ * (1 + context.optimizer.slots().size()) + 1) * sizeof(float)),
      travelling_((floats_ + tail_size()) * sizeof(float)),
      space_(context.model, memory(context.model)),
      good_buffers_(buffers().begin(), buffers().end()) {}

FlatMemory LockstepModel::memory(Model& model) {
  const FlatMemory memory{.parameters = parameters_.floats().first(floats_),
                          .gradients = gradients(),
                          .buffers = buffers()};
  copy_values(model, memory);
  sums_.take_first(memory.parameters);
  sums_.take_first(memory.buffers);
  return memory;
}

void LockstepModel::put_vote(const Vote& vote) {
  const auto slots = votes();
  std::ranges::fill(slots, 0.0F);
  slots[rank_] = static_cast<float>(vote.loss);
  slots[world_] = vote.stop ? 1 : 0;
}

StepOutcome LockstepModel::count_votes() {
  const auto slots = votes();
  StepOutcome outcome;
  outcome.stop = slots[world_] != 0;
  for (std::size_t rank = 0; rank < world_; ++rank) {
    outcome.loss += slots[rank];
    if (!std::isfinite(slots[rank]) && outcome.diverged_rank < 0) {
      outcome.diverged_rank = static_cast<int>(rank);
    }
  }
  if (outcome.diverged_rank >= 0) {
    std::ranges::copy(good_buffers_, buffers().begin());
  } else {
    for (float& sum : buffers()) sum /= static_cast<float>(world_);
    std::ranges::copy(buffers(), good_buffers_.begin());
  }
  return outcome;
}

void LockstepModel::update(const Optimizer& optimizer, const UpdatePlan& plan,
                           StepOutcome& outcome) {
  if (plan.want_norm || plan.clip_norm > 0) {
    outcome.gradient_norm = std::sqrt(sum_of_squares(gradients()));
  }
  const UpdateScalars scalars{.lr = plan.lr,
                              .step = plan.step + 1,
                              .gradient_scale = clip_scale(outcome.gradient_norm, plan.clip_norm)};
  std::vector<std::span<float>> slots;
  for (std::size_t slot = 1; slot <= optimizer.slots().size(); ++slot) {
    slots.push_back(parameters_.floats().subspan(floats_ * slot, floats_));
  }
  optimizer.update(space_.memory().parameters, gradients(), slots, scalars);
}

}  // namespace cohort
