#include "strategy/allreduce_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/private_memory.h"
#include "collective/collectives.h"
#include "strategy/bucket_reducer.h"
#include "tensor/square_sum.h"

namespace cohort {
namespace {

class AllreduceBuckets : public Strategy {
 public:
  explicit AllreduceBuckets(const StrategyContext& context)
      : context_(context),
        layout_(ModelLayout::of(context.model)),
        floats_(layout_.parameters.size),
        world_(static_cast<std::size_t>(context.engine.world())),
        transport_(context.engine.connect(deadline())),
        side_transport_(context.engine.connect(deadline())),
        side_(*side_transport_),
        parameters_((floats_ * (1 + slot_count()) + 1) * sizeof(float)),
        travelling_((floats_ + tail()) * sizeof(float)),
        space_(context.model, memory()),
        good_buffers_(buffers().begin(), buffers().end()),
        reducer_(*transport_, travelling_.floats(),
                 GradientBuckets::of(layout_.parameters, tail(), bucket_bytes()),
                 reducer_options()) {
    space_.on_gradient_ready(
        [this](std::size_t parameter) { reducer_.parameter_ready(parameter); });
  }

  std::string describe() const override {
    return fmt::format("all-reduce by messages: {} over {}, {} workers, {} bucket{}{}",
                       context_.options.algorithm, context_.engine.name(), world_,
                       reducer_.buckets().segments.size(),
                       reducer_.buckets().segments.size() == 1 ? "" : "s",
                       context_.engine.sends_in_background() ? " during the backward pass" : "");
  }

  FlatSpace& space() override { return space_; }

  void begin_last_backward(const Vote& vote) override {
    reducer_.begin_step();
    const auto slots = votes();
    std::fill(slots.begin(), slots.end(), 0.0F);
    slots[static_cast<std::size_t>(context_.engine.rank())] = static_cast<float>(vote.loss);
    slots[world_] = vote.stop ? 1 : 0;
    space_.begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_.finish_step();
    PhaseSpan span(context_.phases, Phase::communication);
    reducer_.wait();
    span.next(Phase::optimizer);
    StepOutcome outcome = count_votes();
    if (outcome.diverged_rank >= 0) {
      std::ranges::copy(good_buffers_, buffers().begin());
      return outcome;
    }
    average_buffers();
    update(plan, outcome);
    return outcome;
  }

  void sum_over_workers(std::span<float> values) override {
    all_reduce(side_, values, side_options());
  }

  Traffic traffic() const override {
    return {transport_->bytes_sent() + side_transport_->bytes_sent(),
            transport_->bytes_received() + side_transport_->bytes_received()};
  }

  void close() noexcept override {
    transport_->close();
    side_transport_->close();
  }

 private:
  // What travels: gradients | float buffers | a loss per rank | the number of ranks that stop.
  std::size_t tail() const { return layout_.buffers.size + world_ + 1; }
  std::size_t slot_count() const { return context_.optimizer.slots().size(); }
  std::size_t bucket_bytes() const {
    return static_cast<std::size_t>(context_.options.bucket_bytes);
  }
  Deadline deadline() const { return Deadline::in(context_.timeout); }
  std::span<float> buffers() const {
    return travelling_.floats().subspan(floats_, layout_.buffers.size);
  }
  std::span<float> votes() const {
    return travelling_.floats().subspan(floats_ + layout_.buffers.size, world_ + 1);
  }

  CollectiveOptions side_options() {
    return {.deadline = deadline(), .tag = side_tag_++, .algorithm = "direct"};
  }

  BucketReducer::Options reducer_options() const {
    return {.algorithm = context_.options.algorithm,
            .timeout = context_.timeout,
            .background = context_.engine.sends_in_background(),
            .phases = &context_.phases};
  }

  // Rank 0's model is everybody's.
  FlatMemory memory() {
    const FlatMemory memory{.parameters = parameters_.floats().first(floats_),
                            .gradients = travelling_.floats().first(floats_),
                            .buffers = buffers()};
    copy_values(context_.model, memory.parameters, memory.buffers);
    broadcast(side_, memory.parameters, 0, side_options());
    broadcast(side_, memory.buffers, 0, side_options());
    return memory;
  }

  StepOutcome count_votes() const {
    const auto slots = votes();
    StepOutcome outcome;
    outcome.stop = slots[world_] != 0;
    for (std::size_t rank = 0; rank < world_; ++rank) {
      outcome.loss += slots[rank];
      if (!std::isfinite(slots[rank]) && outcome.diverged_rank < 0) {
        outcome.diverged_rank = static_cast<int>(rank);
      }
    }
    return outcome;
  }

  void average_buffers() {
    for (float& sum : buffers()) sum /= static_cast<float>(world_);
    std::ranges::copy(buffers(), good_buffers_.begin());
  }

  void update(const UpdatePlan& plan, StepOutcome& outcome) {
    const FlatMemory& memory = space_.memory();
    if (plan.want_norm || plan.clip_norm > 0) {
      outcome.gradient_norm = std::sqrt(sum_of_squares(memory.gradients));
    }
    const UpdateScalars scalars{
        .lr = plan.lr,
        .step = plan.step + 1,
        .gradient_scale = clip_scale(outcome.gradient_norm, plan.clip_norm)};
    std::vector<std::span<float>> slots;
    for (std::size_t slot = 1; slot <= slot_count(); ++slot) {
      slots.push_back(parameters_.floats().subspan(floats_ * slot, floats_));
    }
    context_.optimizer.update(memory.parameters, memory.gradients, slots, scalars);
  }

  StrategyContext context_;
  ModelLayout layout_;
  std::size_t floats_;
  std::size_t world_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Transport> side_transport_;  // Layers sum on it while buckets are under way.
  Executor side_;
  Tag side_tag_ = 0;
  PrivateMemory parameters_;  // Parameters, then slots.
  PrivateMemory travelling_;
  FlatSpace space_;
  std::vector<float> good_buffers_;  // Of the last step that was applied.
  BucketReducer reducer_;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_buckets(const StrategyContext& context) {
  return std::make_unique<AllreduceBuckets>(context);
}

}  // namespace cohort
