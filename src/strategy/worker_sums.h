#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "collective/collectives.h"
#include "strategy/model_state.h"
#include "strategy/strategy.h"

namespace cohort {

/// What all workers do together beside the training itself, on a connection of its own: sums for
/// layers and validation, the first model, the last one. Every worker makes the same calls.
class WorkerSums {
 public:
  explicit WorkerSums(const StrategyContext& context);

  int world() const { return transport_->size(); }

  /// Replaces the floats by their sum over the workers: the same bits on all.
  void sum(std::span<float> values);
  void mean(std::span<float> values);
  /// Replaces the floats by worker 0's.
  void take_first(std::span<float> values);
  void take_first(std::span<std::int64_t> numbers);
  /// All of them; `age` too.
  void take_first(const ModelMemory& memory, ModelAge& age);

  /// What each worker gives, by rank; they may give any number of numbers.
  std::vector<std::vector<std::int64_t>> gather(std::span<const std::int64_t> own);

  Traffic traffic() const { return {transport_->bytes_sent(), transport_->bytes_received()}; }
  void close() noexcept { transport_->close(); }

 private:
  CollectiveOptions options(const char* algorithm);

  Timeout timeout_;
  Activity* activity_;
  std::unique_ptr<Transport> transport_;
  Executor executor_;
  Tag tag_ = 0;
};

}  // namespace cohort
