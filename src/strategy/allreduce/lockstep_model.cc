#include "strategy/allreduce/lockstep_model.h"

#include <algorithm>
#include <cmath>

#include "optimizer/optimizer.h"

namespace cohort::strategy {

// Two pieces of memory. One has the model, parameters and slots, and is only changed by updates.
// The other is all that is summed over the workers in a step: gradients, and behind them a *tail*
// with the buffers (whose sum becomes their mean) and the votes:
//
//   travelling   [ gradients ][ buffers ][ loss of rank 0 | 1 | … | stop | save ]
//
// So one sum brings everything, and all workers have the same of it to the bit.
LockstepModel::LockstepModel(const StrategyContext& context)
    : layout_(tensor::ModelLayout::of(context.model)),
      floats_(layout_.parameters.size),
      slots_(context.optimizer.slots().size()),
      rank_(static_cast<std::size_t>(context.engine.rank())),
      world_(static_cast<std::size_t>(context.engine.world())),
      parts_(context.parts),
      sums_(context),
      parameters_((floats_ * (1 + slots_) + 1) * sizeof(float)),
      travelling_((floats_ + tail_size()) * sizeof(float)),
      space_(context.model, first_model(context)),
      good_buffers_(buffers().begin(), buffers().end()) {}

ModelMemory LockstepModel::model_memory() const {
  ModelMemory memory{
      .parameters = parameters_.floats().first(floats_), .slots = {}, .buffers = buffers()};
  for (std::size_t slot = 1; slot <= slots_; ++slot) {
    memory.slots.push_back(parameters_.floats().subspan(floats_ * slot, floats_));
  }
  return memory;
}

tensor::FlatMemory LockstepModel::first_model(const StrategyContext& context) {
  const ModelMemory memory = model_memory();
  if (rank_ == 0) age_ = load_start(context, memory);
  sums_.take_first(memory, age_);
  return {.parameters = memory.parameters, .gradients = gradients(), .buffers = memory.buffers};
}

collective::GradientBuckets LockstepModel::buckets(std::int64_t bucket_bytes,
                                                   const std::vector<bool>& travels_apart) const {
  std::vector<std::size_t> offsets;
  for (const tensor::FlatEntry& entry : layout_.parameters.entries) offsets.push_back(entry.offset);
  return collective::GradientBuckets::of(offsets, floats_, tail_size(),
                                         static_cast<std::size_t>(bucket_bytes), travels_apart);
}

// A sum of zeros and one loss is that loss, so every rank gets all losses. A loss that is not
// finite stays so, in its own place.
void LockstepModel::put_vote(const Vote& vote) {
  const auto places = votes();
  std::ranges::fill(places, 0.0F);
  places[rank_] = static_cast<float>(vote.loss);
  places[world_] = vote.stop ? 1 : 0;
  places[world_ + 1] = vote.save ? 1 : 0;
}

StepOutcome LockstepModel::count_votes() {
  const auto places = votes();
  StepOutcome outcome;
  for (std::size_t rank = 0; rank < world_; ++rank) {
    outcome.count(static_cast<int>(rank), {.loss = places[rank]});
  }
  outcome.stop = places[world_] != 0;
  outcome.save = places[world_ + 1] != 0;
  if (outcome.diverged_rank >= 0) {
    std::ranges::copy(good_buffers_, buffers().begin());
  } else {
    for (float& sum : buffers()) sum /= static_cast<float>(world_);
  }
  return outcome;
}

void LockstepModel::update(const optimizer::Optimizer& optimizer, const UpdatePlan& plan,
                           StepOutcome& outcome) {
  if (plan.want_norm || plan.clip_norm > 0) {
    outcome.gradient_norm = std::sqrt(optimizer::sum_of_squares(gradients()));
  }
  const optimizer::UpdateScalars scalars{
      .lr = plan.lr,
      .step = age_.updates + 1,
      .gradient_scale = optimizer::clip_scale(outcome.gradient_norm, plan.clip_norm)};
  ModelMemory memory = model_memory();
  memory.slots.resize(optimizer.slots().size());
  optimizer.update(memory.parameters, gradients(), memory.slots, scalars);
  std::ranges::copy(buffers(), good_buffers_.begin());
  age_ = {.step = plan.step + 1, .updates = age_.updates + 1};
}

void LockstepModel::save(tensor::TrainingState& state) const {
  save_model(model_memory(), state);
  state.buffers = good_buffers_;
  state.step = age_.step;
  state.updates = age_.updates;
  state.work = work_after(age_.step, parts_);
  state.own.clear();
}

collective::BucketReducer::Options plain_bucket_options(const StrategyContext& context) {
  return {.algorithm = context.options.algorithm,
          .hosts = context.engine.hosts(),
          .timeout = context.timeout.usual(),
          .background = context.engine.sends_in_background(),
          .phases = &context.phases,
          .activity = context.activity};
}

}  // namespace cohort::strategy
