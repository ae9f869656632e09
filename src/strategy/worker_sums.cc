#include "strategy/worker_sums.h"

#include <array>

namespace cohort::strategy {

WorkerSums::WorkerSums(const StrategyContext& context)
    : timeout_(context.timeout),
      activity_(context.activity),
      transport_(context.engine.connect(context.timeout.deadline())),
      executor_(*transport_) {}

// A tag of its own for every call: a message of a call that others have not come to is not taken
// for one of this.
collective::CollectiveOptions WorkerSums::options(const char* algorithm) {
  return {.deadline = timeout_.deadline(), .tag = tag_++, .algorithm = algorithm};
}

void WorkerSums::sum(collective::Numbers numbers) {
  const Waiting waiting(activity_, WaitFor::sum);
  collective::all_reduce(executor_, numbers, options("auto"));
}

void WorkerSums::mean(std::span<float> values) {
  sum(values);
  for (float& value : values) value /= static_cast<float>(world());
}

bool WorkerSums::any(bool own) {
  std::array<std::int64_t, 1> count = {own ? 1 : 0};
  sum(count);
  return count[0] > 0;
}

void WorkerSums::take_first(collective::Elements elements) {
  const Waiting waiting(activity_, WaitFor::chiefs_model);
  collective::broadcast(executor_, elements, 0, options("auto"));
}

void WorkerSums::take_first(const ModelMemory& memory, ModelAge& age) {
  std::array<std::int64_t, 2> numbers = {age.step, age.updates};
  take_first(numbers);
  age = {.step = numbers[0], .updates = numbers[1]};
  take_first(memory.parameters);
  take_first(memory.buffers);
  // Before the first update all are zero.
  if (age.updates == 0) return;
  for (const auto slot : memory.slots) take_first(slot);
}

}  // namespace cohort::strategy
