#include "strategy/own_model.h"

namespace cohort {

OwnModel::OwnModel(const StrategyContext& context, WorkerSums& sums)
    : optimizer_(context.optimizer) {
  const ModelLayout layout = ModelLayout::of(context.model);
  const std::size_t size = layout.parameters.size;
  const std::size_t slot_count = optimizer_.slots().size();
  memory_ = PrivateMemory((size * (2 + slot_count) + layout.buffers.size + 1) * sizeof(float));
  auto rest = memory_.floats();
  const auto next = [&](std::size_t count) {
    const auto part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  const FlatMemory memory{
      .parameters = next(size), .gradients = next(size), .buffers = next(layout.buffers.size)};
  for (std::size_t slot = 0; slot < slot_count; ++slot) slots_.push_back(next(size));
  copy_values(context.model, memory);
  sums.take_first(memory.parameters);
  sums.take_first(memory.buffers);
  space_.emplace(context.model, memory);
}

void OwnModel::update(double lr, double gradient_scale) {
  optimizer_.update(parameters(), gradients(), slots_,
                    {.lr = lr, .step = ++updates_, .gradient_scale = gradient_scale});
}

}  // namespace cohort
