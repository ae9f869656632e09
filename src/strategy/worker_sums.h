#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/traffic.h"
#include "collective/collectives.h"
#include "strategy/model_state.h"
#include "strategy/strategy.h"

namespace cohort::strategy {

/// What all workers do together beside the training itself, on a connection of its own: sums for
/// layers and validation, the first model, the last one. Every worker makes the same calls in the
/// same order, on one thread; each call has the context's timeout and a tag of its own. They throw
/// Error(peer_lost) or Error(timeout), and the connection is closed then (Executor). What is waited
/// for is shown in the context's activity.
class WorkerSums {
 public:
  explicit WorkerSums(const StrategyContext& context);

  int world() const { return transport_->size(); }

  /// Replaces the numbers by their sum over the workers: the same bits on all.
  void sum(collective::Numbers numbers);
  void mean(std::span<float> values);
  /// Whether it is so with any worker.
  bool any(bool own);
  /// Returns when all workers have called it.
  void wait_for_all() { any(false); }
  /// Replaces the elements by rank 0's.
  void take_first(collective::Elements elements);
  /// All of them; `age` too.
  void take_first(const ModelMemory& memory, ModelAge& age);

  /// What each worker gives, by rank; they may give any number of elements.
  template <collective::Element T>
  std::vector<std::vector<T>> gather(std::span<const T> own) {
    const Waiting waiting(activity_, WaitFor::word);
    return cohort::collective::gather(executor_, own, options("auto"));
  }

  Traffic traffic() const { return transport_->traffic(); }
  void close() noexcept { transport_->close(); }

 private:
  collective::CollectiveOptions options(const char* algorithm);

  Timeout timeout_;
  Activity* activity_;
  std::unique_ptr<transport::Transport> transport_;
  collective::Executor executor_;
  transport::Tag tag_ = 0;
};

}  // namespace cohort::strategy
