#include "strategy/gossip/own_model.h"

#include <algorithm>

namespace cohort {

OwnModel::OwnModel(const StrategyContext& context, WorkerSums& sums)
    : optimizer_(context.optimizer) {
  const ModelLayout layout = ModelLayout::of(context.model);
  const std::size_t size = layout.parameters.size;
  const std::size_t slot_count = optimizer_.slots().size();
  floats_ = PrivateMemory((size * (2 + slot_count) + layout.buffers.size + 1) * sizeof(float));
  auto rest = floats_.floats();
  const auto next = [&](std::size_t count) {
    const auto part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  memory_ = {.parameters = next(size), .slots = {}, .buffers = next(layout.buffers.size)};
  const auto gradients = next(size);
  for (std::size_t slot = 0; slot < slot_count; ++slot) memory_.slots.push_back(next(size));

  const bool is_first = context.engine.rank() == 0;
  ModelAge age;
  if (is_first) age = load_start(context, memory_);
  sums.take_first(memory_, age);
  if (!is_first && context.start != nullptr) age = load_start(context, memory_);
  updates_ = age.updates;
  space_.emplace(context.model, FlatMemory{.parameters = memory_.parameters,
                                           .gradients = gradients,
                                           .buffers = memory_.buffers});
}

void OwnModel::update(double lr, double gradient_scale, double share) {
  const Optimizer& optimizer = rule_ ? *rule_ : optimizer_;
  optimizer.update(
      memory_.parameters, gradients(), std::span(memory_.slots).first(optimizer.slots().size()),
      {.lr = lr, .step = ++updates_, .gradient_scale = gradient_scale, .share = share});
}

OwnModel::Past OwnModel::past() const {
  Past past{.floats = {memory_.parameters.begin(), memory_.parameters.end()}, .updates = updates_};
  for (const std::span<float> slot : memory_.slots) {
    past.floats.insert(past.floats.end(), slot.begin(), slot.end());
  }
  return past;
}

void OwnModel::go_back(const Past& past) {
  auto from = std::span(past.floats);
  const auto take = [&](std::span<float> into) {
    std::ranges::copy(from.first(into.size()), into.begin());
    from = from.subspan(into.size());
  };
  take(memory_.parameters);
  for (const std::span<float> slot : memory_.slots) take(slot);
  updates_ = past.updates;
}

void OwnModel::save(TrainingState& state) const {
  save_model(memory_, state);
  state.updates = updates_;
}

}  // namespace cohort
