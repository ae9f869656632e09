#include "strategy/worker_sums.h"

namespace cohort {

WorkerSums::WorkerSums(const StrategyContext& context)
    : timeout_(context.timeout),
      transport_(context.engine.connect(Deadline::in(context.timeout))),
      executor_(*transport_) {}

CollectiveOptions WorkerSums::options(const char* algorithm) {
  return {.deadline = Deadline::in(timeout_), .tag = tag_++, .algorithm = algorithm};
}

void WorkerSums::sum(std::span<float> values) {
  all_reduce(executor_, values, options("auto"));
}

void WorkerSums::mean(std::span<float> values) {
  sum(values);
  for (float& value : values) value /= static_cast<float>(world());
}

void WorkerSums::take_first(std::span<float> values) {
  broadcast(executor_, values, 0, options("auto"));
}

}  // namespace cohort
