#pragma once

#include <span>
#include <vector>

#include "collective/bucket_reducer.h"
#include "os/memory.h"
#include "strategy/model_state.h"
#include "strategy/strategy.h"
#include "strategy/worker_sums.h"

namespace cohort::strategy {

/// What strategies have in common in which every worker has the whole model and makes the same
/// update of it: the memory, the first model (rank 0's), the votes, the mean of the float buffers
/// and the update itself. How sums over the workers are made is the strategy's business:
///
///   put_vote() ─▶ (the strategy sums travelling() over the workers) ─▶ count_votes() ─▶ update()
///
/// One object per worker, used by the thread that trains; while sums are under way whoever makes
/// them may use travelling() on another one.
class LockstepModel {
 public:
  /// All workers make theirs together.
  explicit LockstepModel(const StrategyContext& context);

  tensor::FlatSpace& space() { return space_; }
  const tensor::ModelLayout& layout() const { return layout_; }

  /// What is summed over the workers in a step: the gradients, then the *tail*, which is float
  /// buffers | a loss per rank | the number of ranks that stop | that of those that want a
  /// checkpoint.
  std::span<float> travelling() const { return travelling_.floats().first(floats_ + tail_size()); }
  std::span<float> gradients() const { return travelling_.floats().first(floats_); }
  std::span<float> tail() const { return travelling().subspan(floats_); }
  std::size_t tail_size() const { return layout_.buffers.size + world_ + 2; }

  /// What is summed, cut into pieces of about so many bytes. See GradientBuckets::of.
  collective::GradientBuckets buckets(std::int64_t bucket_bytes,
                                      const std::vector<bool>& travels_apart = {}) const;

  /// Before the tail is summed.
  void put_vote(const Vote& vote);

  /// After the tail was summed. Buffers become their mean over the workers, or when a rank has
  /// diverged what they were after the last good step.
  StepOutcome count_votes();

  /// Updates the parameters by the summed gradients; the outcome gets their norm. `optimizer` has
  /// at most the slots of the context's. The step is done then.
  void update(const optimizer::Optimizer& optimizer, const UpdatePlan& plan, StepOutcome& outcome);

  /// Steps done.
  std::int64_t step() const { return age_.step; }

  /// The model as it is after the steps done, whatever has begun since.
  void save(tensor::TrainingState& state) const;

  /// For layers and validation, and free between the steps' backward passes.
  WorkerSums& sums() { return sums_; }
  const WorkerSums& sums() const { return sums_; }

 private:
  std::span<float> buffers() const { return tail().first(layout_.buffers.size); }
  std::span<float> votes() const { return tail().subspan(layout_.buffers.size); }
  ModelMemory model_memory() const;
  tensor::FlatMemory first_model(const StrategyContext& context);

  tensor::ModelLayout layout_;
  std::size_t floats_;
  std::size_t slots_;
  std::size_t rank_;
  std::size_t world_;
  std::int64_t parts_;
  WorkerSums sums_;
  os::PrivateMemory parameters_;  // Parameters, then slots.
  os::PrivateMemory travelling_;
  ModelAge age_;
  tensor::FlatSpace space_;
  std::vector<float> good_buffers_;  // Of the last step that was applied.
};

/// How buckets of plain gradients travel in such a strategy.
collective::BucketReducer::Options plain_bucket_options(const StrategyContext& context);

}  // namespace cohort::strategy
