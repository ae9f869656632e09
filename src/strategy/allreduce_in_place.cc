#include "strategy/allreduce_in_place.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "collective/host_reduction.h"
#include "optimizer/square_sum.h"

namespace cohort {
namespace {

// Small enough that a block of gradients, parameters and two slots stays in a core's own cache
// between the pass that sums and the pass that updates.
constexpr std::size_t kBlock = 16384;

// With a core of its own a rank gains nothing by sleeping through a short wait, and loses the time
// it takes to wake up.
constexpr auto kSpin = std::chrono::milliseconds(2);

WaitPolicy wait_policy(int world, int cores) {
  WaitPolicy policy = WaitPolicy::for_ranks(world, cores);
  if (!policy.yield) policy.busy = kSpin;
  return policy;
}

// Notes a rank leaves for the others, see HostReduction::note.
enum Note { kLoss, kStop, kSquareSum };

class AllreduceInPlace : public Strategy {
 public:
  explicit AllreduceInPlace(const StrategyContext& context)
      : context_(context),
        layout_(ModelLayout::of(context.model)),
        floats_(layout_.parameters.size),
        slots_(context.optimizer.slots().size()),
        group_(make_group()),
        space_(context.model, memory()),
        buffer_means_(space_.memory().buffers.begin(), space_.memory().buffers.end()),
        scratch_(kBlock) {}

  ~AllreduceInPlace() override { group_.leave(); }

  std::string describe() const override {
    if (group_.world() == 1) return "one worker, fused update";
    return fmt::format("all-reduce in place: {} workers of one host share memory ({})",
                       group_.world(), context_.engine.name());
  }

  FlatSpace& space() override { return space_; }

  void begin_last_backward(const Vote& vote) override {
    const auto mine = group_.note(group_.rank());
    mine[kLoss] = vote.loss;
    mine[kStop] = vote.stop ? 1 : 0;
    space_.begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_.finish_step();
    barrier("gradients");
    StepOutcome outcome = count_votes();
    if (outcome.diverged_rank >= 0) {
      take_buffers();  // As they were after the last good step.
      return outcome;
    }
    average_buffers();
    if (plan.clip_norm > 0) {
      update_clipped(plan);
    } else {
      update_fused(plan);
    }
    barrier("updated parameters");
    take_buffers();
    if (plan.want_norm || plan.clip_norm > 0) outcome.gradient_norm = gradient_norm();
    return outcome;
  }

  void sum_over_workers(std::span<float> values) override {
    while (!values.empty()) {
      const auto part = values.first(std::min(values.size(), HostReduction::kSmall));
      group_.small_sum(part, deadline());
      values = values.subspan(part.size());
    }
  }

  // Counted as if sent: what this rank read of the others' gradients, and they of its.
  Traffic traffic() const override { return {bytes_read_, bytes_read_}; }

  void close() noexcept override { group_.leave(); }

 private:
  // Shared: parameters, then slots. Contribution: gradients, then buffers.
  HostReduction make_group() {
    Engine& engine = context_.engine;
    SharedRegions* regions = engine.shared_regions();
    if (regions == nullptr) {
      fail(ErrorCode::unsupported, "engine {} shares no memory", engine.name());
    }
    const HostReduction::Shape shape{.world = engine.world(),
                                     .contribution = floats_ + layout_.buffers.size,
                                     .shared = floats_ * (1 + slots_)};
    const auto region = regions->region(HostReduction::bytes_needed(shape), deadline());
    return HostReduction(engine.rank(), shape, region, regions->watch(),
                         wait_policy(engine.world(), context_.cores));
  }

  // Rank 0's model is everybody's: it puts its values where all find them.
  FlatMemory memory() {
    const auto contribution = group_.contribution(group_.rank());
    const FlatMemory memory{.parameters = group_.shared().first(floats_),
                            .gradients = contribution.first(floats_),
                            .buffers = contribution.subspan(floats_)};
    if (group_.rank() == 0) copy_values(context_.model, memory);
    barrier("initial model");
    if (group_.rank() != 0) {
      std::ranges::copy(group_.contribution(0).subspan(floats_), memory.buffers.begin());
    }
    barrier("initial model");
    return memory;
  }

  Deadline deadline() const { return Deadline::in(context_.timeout); }

  void barrier(const char* doing) {
    const PhaseSpan span(context_.phases, Phase::wait);
    group_.barrier(deadline(), doing);
  }

  StepOutcome count_votes() const {
    StepOutcome outcome;
    for (int rank = 0; rank < group_.world(); ++rank) {
      const auto note = group_.note(rank);
      outcome.loss += note[kLoss];
      outcome.stop |= note[kStop] != 0;
      if (!std::isfinite(note[kLoss]) && outcome.diverged_rank < 0) outcome.diverged_rank = rank;
    }
    return outcome;
  }

  void average_buffers() {
    if (buffer_means_.empty()) return;
    group_.sum_contributions({floats_, floats_ + buffer_means_.size()}, buffer_means_);
    for (float& mean : buffer_means_) mean /= static_cast<float>(group_.world());
  }

  void take_buffers() { std::ranges::copy(buffer_means_, space_.memory().buffers.begin()); }

  // Sum and update of one block after the other. Alone there is nothing to sum.
  void update_fused(const UpdatePlan& plan) {
    const UpdateScalars scalars{.lr = plan.lr, .step = plan.step + 1, .gradient_scale = 1};
    double square_sum = 0;
    const auto begin = Clock::now();
    Duration summing{};
    for_each_block([&](Segment block) {
      const auto block_begin = Clock::now();
      const std::span<const float> gradients = summed(block, scratch_);
      summing += Clock::now() - block_begin;
      if (plan.want_norm) square_sum += sum_of_squares(gradients);
      update(block, gradients, scalars);
    });
    context_.phases.add_interleaved(Phase::communication, Phase::optimizer, begin, summing);
    group_.note(group_.rank())[kSquareSum] = square_sum;
  }

  // The norm must be known before the first update: sums go to this rank's own gradients, of which
  // nobody else reads the segment this rank owns.
  void update_clipped(const UpdatePlan& plan) {
    PhaseSpan span(context_.phases, Phase::communication);
    const auto gradients = space_.memory().gradients;
    double square_sum = 0;
    for_each_block([&](Segment block) {
      const auto target = gradients.subspan(block.begin, block.size());
      const auto sums = summed(block, target);
      square_sum += sum_of_squares(sums);
    });
    group_.note(group_.rank())[kSquareSum] = square_sum;
    span.next(Phase::wait);
    group_.barrier(deadline(), "gradient norm");
    span.next(Phase::optimizer);
    const double norm = gradient_norm();
    const UpdateScalars scalars{
        .lr = plan.lr, .step = plan.step + 1, .gradient_scale = clip_scale(norm, plan.clip_norm)};
    for_each_block([&](Segment block) {
      update(block, gradients.subspan(block.begin, block.size()), scalars);
    });
  }

  template <class Visit>
  void for_each_block(Visit&& visit) const {
    const Segment mine = group_.owned(floats_);
    for (std::size_t begin = mine.begin; begin < mine.end; begin += kBlock) {
      visit(Segment{begin, std::min(begin + kBlock, mine.end)});
    }
  }

  // This block of the sum of all gradients: in `target`, or where it stands when there is one rank.
  std::span<const float> summed(Segment block, std::span<float> target) {
    if (group_.world() == 1) return space_.memory().gradients.subspan(block.begin, block.size());
    const auto sums = target.first(block.size());
    group_.sum_contributions(block, sums);
    bytes_read_ += sums.size_bytes() * static_cast<std::size_t>(group_.world() - 1);
    return sums;
  }

  void update(Segment block, std::span<const float> gradients, const UpdateScalars& scalars) {
    std::vector<std::span<float>>& slots = block_slots_;
    slots.clear();
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      slots.push_back(group_.shared().subspan(floats_ * (1 + slot) + block.begin, block.size()));
    }
    context_.optimizer.update(space_.memory().parameters.subspan(block.begin, block.size()),
                              gradients, slots, scalars);
  }

  double gradient_norm() const {
    double square_sum = 0;
    for (int rank = 0; rank < group_.world(); ++rank) square_sum += group_.note(rank)[kSquareSum];
    return std::sqrt(square_sum);
  }

  StrategyContext context_;
  ModelLayout layout_;
  std::size_t floats_;
  std::size_t slots_;
  HostReduction group_;
  FlatSpace space_;
  std::vector<float> buffer_means_;
  std::vector<float> scratch_;
  std::vector<std::span<float>> block_slots_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_in_place(const StrategyContext& context) {
  return std::make_unique<AllreduceInPlace>(context);
}

}  // namespace cohort
