#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/failpoint.h"
#include "collective/host/host_update.h"
#include "optimizer/optimizer.h"
#include "strategy/make_strategy.h"
#include "strategy/model_state.h"

namespace cohort::strategy {
namespace {

// With a core of its own a rank gains nothing by sleeping through a short wait, and loses the time
// it takes to wake up.
constexpr auto kSpin = std::chrono::milliseconds(2);

os::WaitPolicy wait_policy(int world, int cores) {
  os::WaitPolicy policy = os::WaitPolicy::for_ranks(world, cores);
  if (!policy.yield) policy.busy = kSpin;
  return policy;
}

// Notes a rank leaves for the others, see HostReduction::note. Rank 0's last two are of the first
// model.
enum Note { kLoss, kStop, kSquareSum, kStep, kUpdates };

/// Synchronous data parallelism of ranks that share memory, or of one rank alone: nothing is sent.
///
/// Parameters and optimizer slots exist once per host; every rank's gradients and float buffers can
/// be read by all. In memory that outlives the group stand
///
///   [ record ] [ parameters | slot | slot … ] [ gradients, buffers of rank 0 ] [ … of rank 1 ] …
///
/// and in memory of this group alone the barrier, the notes (Note) and the update's journal. A
/// step:
///
///   1. backward pass: every rank's gradients and buffers are in its own place
///   2. barrier "gradients": all are there. Every rank counts the votes; where one has diverged the
///      step ends here, on all ranks, and nothing has changed
///   3. every rank takes the mean of all buffers, for itself
///   4. every rank takes the segment it owns: it adds up that segment of everybody's gradients and
///      updates the parameters there, block by block while the block is in the cache (HostUpdate).
///      With clipping the sums come first, then a barrier "gradient norm", then the updates
///   5. barrier "updated parameters": the next step's forward pass may begin
///
/// A death. Whoever waits at a barrier learns of it (Error(peer_lost)). Where no rank has begun
/// with 4 the model is unchanged: the step is dropped, and made anew by the next group. Where one
/// has, the survivor that carries the state over does for all others what is missing of 4, by the
/// journal, then writes record and buffers: the step is wholly applied. It may be killed in the
/// middle of that as well: another one then goes on from the same journal.
class AllreduceInPlace : public Strategy {
 public:
  explicit AllreduceInPlace(const StrategyContext& context)
      : context_(context),
        layout_(tensor::ModelLayout::of(context.model)),
        floats_(layout_.parameters.size),
        slots_(context.optimizer.slots().size()),
        group_(make_group()),
        changing_(changing()),
        update_(group_, changing_, context.optimizer, journal_memory()),
        space_(context.model, first_model()),
        first_step_(age_.step),
        buffer_means_(space_.memory().buffers.begin(), space_.memory().buffers.end()),
        next_means_(buffer_means_.size()) {}

  // Counted as if sent: what this rank read of the others' gradients, and they of its.
  StrategyReport report() const override {
    return {words(), {update_.bytes_read(), update_.bytes_read()}};
  }

  tensor::FlatSpace& space() override { return space_; }

  void begin_last_backward(const Vote& vote) override {
    const auto mine = group_.note(group_.rank());
    mine[kLoss] = vote.loss;
    mine[kStop] = vote.stop ? 1 : 0;
    space_.begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_.finish_step();
    failpoint("allreduce.before-gradients");
    barrier("gradients");
    StepOutcome outcome = count_votes();
    if (outcome.diverged_rank >= 0) {
      take_buffers();  // As they were after the last good step.
      return outcome;
    }
    // Before any parameter changes: from then on the step may have to be finished, buffers
    // included.
    average_buffers(next_means_);
    averaged_step_ = plan.step + 1;
    if (plan.clip_norm > 0) {
      update_clipped(plan);
    } else {
      update_fused(plan);
    }
    failpoint("allreduce.after-update");
    barrier("updated parameters");
    age_ = {.step = plan.step + 1, .updates = age_.updates + 1};
    std::swap(buffer_means_, next_means_);
    take_buffers();
    if (plan.want_norm || plan.clip_norm > 0) outcome.gradient_norm = gradient_norm();
    return outcome;
  }

  void sum_over_workers(collective::Numbers numbers) override {
    group_.small_sum(numbers, deadline());
  }

  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return false; }

  // No other rank can change the parameters before this one comes to the next step's barrier.
  void save_state(tensor::TrainingState& state) override {
    save_model({.parameters = changing_.front(),
                .slots = {changing_.begin() + 1, changing_.end()},
                .buffers = buffer_means_},
               state);
    set_age(state, age_);
    state.own.clear();
  }

  // The model stays where it is. It is made whole there, so that whoever is left can take over
  // should this worker be lost as well.
  void carry_state(tensor::TrainingState& state) override {
    if (record_->is_changed_by(context_.generation)) write_record();
    if (!record_->holds()) {
      fail(ErrorCode::corrupt, "a later group of workers has changed the model of group {}",
           context_.generation);
    }
    if (memory_) {
      state = {};
      state.shared = memory_;
      state.buffers.assign(record_->buffers().begin(), record_->buffers().end());
    } else {
      save_state(state);
      std::ranges::copy(record_->buffers(), state.buffers.begin());
    }
    set_age(state, record_->age());
  }

  void close() noexcept override { group_.leave(); }

 private:
  std::string words() const {
    if (group_.world() == 1) return "one worker, fused update";
    return fmt::format("all-reduce in place: {} workers of one host share memory ({})",
                       group_.world(), context_.engine.name());
  }

  // Shared: parameters, then slots. Contribution: gradients, then buffers. Rank 0 may bring the
  // memory of a group before; what only this group has to say to each other is always new.
  collective::HostReduction make_group() {
    transport::Engine& engine = context_.engine;
    transport::SharedRegions* regions = engine.shared_regions();
    if (regions == nullptr) {
      fail(ErrorCode::unsupported, "engine {} shares no memory", engine.name());
    }
    const collective::HostReduction::Shape shape{.world = engine.world(),
                                                 .contribution = floats_ + layout_.buffers.size,
                                                 .shared = floats_ * (1 + slots_)};
    if (engine.rank() == 0 && context_.start != nullptr) memory_ = context_.start->shared;
    const std::size_t record = ModelRecord::bytes_needed(layout_.buffers.size);
    const auto lasting = regions->lasting_region(
        record + collective::HostReduction::floats_bytes(shape), memory_, deadline());
    record_.emplace(lasting, layout_.buffers.size);
    const auto control =
        regions->region(collective::HostReduction::control_bytes(shape), deadline());
    return collective::HostReduction(engine.rank(), shape, control, lasting.subspan(record),
                                     regions->watch(), wait_policy(engine.world(), context_.cores));
  }

  // A rank alone has nobody who could finish what it began.
  std::span<std::byte> journal_memory() {
    if (group_.world() == 1) return {};
    return context_.engine.shared_regions()->region(
        collective::HostUpdate::journal_bytes(group_.world(), floats_, 1 + slots_), deadline());
  }

  // All that an update changes: parameters, then slots.
  std::vector<std::span<float>> changing() const {
    std::vector<std::span<float>> vectors;
    for (std::size_t i = 0; i <= slots_; ++i) {
      vectors.push_back(group_.shared().subspan(floats_ * i, floats_));
    }
    return vectors;
  }

  std::span<float> buffers_of(int rank) const { return group_.contribution(rank).subspan(floats_); }

  // Rank 0's model is everybody's: it puts its values where all find them.
  tensor::FlatMemory first_model() {
    const auto first = group_.note(0);
    if (group_.rank() == 0) {
      age_ = load_first();
      first[kStep] = static_cast<double>(age_.step);
      first[kUpdates] = static_cast<double>(age_.updates);
    }
    barrier("initial model");
    if (group_.rank() != 0) {
      age_ = {.step = static_cast<std::int64_t>(first[kStep]),
              .updates = static_cast<std::int64_t>(first[kUpdates])};
      std::ranges::copy(buffers_of(0), buffers_of(group_.rank()).begin());
    }
    // Those of a group before may stand here.
    std::ranges::fill(group_.contribution(group_.rank()).first(floats_), 0.0F);
    barrier("initial model");
    return {.parameters = changing_.front(),
            .gradients = group_.contribution(group_.rank()).first(floats_),
            .buffers = buffers_of(group_.rank())};
  }

  // Where the model is there already only its buffers are copied: each worker has some.
  ModelAge load_first() {
    if (context_.start != nullptr && context_.start->shared) {
      if (!record_->holds() || record_->age().step != context_.start->step) {
        fail(ErrorCode::corrupt, "the model of {} steps was changed on its way to group {}",
             context_.start->step, context_.generation);
      }
      std::ranges::copy(record_->buffers(), buffers_of(0).begin());
      return record_->age();
    }
    const ModelAge age = load_start(context_, {.parameters = changing_.front(),
                                               .slots = {changing_.begin() + 1, changing_.end()},
                                               .buffers = buffers_of(0)});
    record_->write(age, buffers_of(0));
    return age;
  }

  Deadline deadline() const { return context_.timeout.deadline(); }

  void barrier(const char* doing) {
    const Waiting waiting(context_.activity, WaitFor::gradients);
    const PhaseSpan span(context_.phases, Phase::wait);
    group_.barrier(deadline(), doing);
  }

  StepOutcome count_votes() const {
    StepOutcome outcome;
    for (int rank = 0; rank < group_.world(); ++rank) {
      const auto note = group_.note(rank);
      outcome.count(rank, {.loss = note[kLoss], .stop = note[kStop] != 0});
    }
    return outcome;
  }

  void average_buffers(std::span<float> means) const {
    if (means.empty()) return;
    group_.sum_contributions({floats_, floats_ + means.size()}, means);
    for (float& mean : means) mean /= static_cast<float>(group_.world());
  }

  void take_buffers() { std::ranges::copy(buffer_means_, space_.memory().buffers.begin()); }

  // Sum and update of one block after the other. Alone there is nothing to sum.
  void update_fused(const UpdatePlan& plan) {
    const optimizer::UpdateScalars scalars{
        .lr = plan.lr, .step = age_.updates + 1, .gradient_scale = 1};
    begin_update(plan.step, {.scalars = scalars});
    double square_sum = 0;
    const auto begin = Clock::now();
    Duration summing{};
    update_.for_each_block([&](collective::Segment block) {
      const auto block_begin = Clock::now();
      const std::span<const float> gradients = update_.sum(block);
      summing += Clock::now() - block_begin;
      if (plan.want_norm) square_sum += optimizer::sum_of_squares(gradients);
      update_.apply(block, gradients, scalars);
    });
    context_.phases.add_interleaved(Phase::communication, Phase::optimizer, begin, summing);
    group_.note(group_.rank())[kSquareSum] = square_sum;
  }

  // The norm must be known before the first update: sums go to this rank's own gradients, of which
  // nobody else reads the segment this rank owns.
  void update_clipped(const UpdatePlan& plan) {
    PhaseSpan span(context_.phases, Phase::communication);
    double square_sum = 0;
    update_.for_each_block([&](collective::Segment block) {
      square_sum += optimizer::sum_of_squares(update_.sum_in_place(block));
    });
    group_.note(group_.rank())[kSquareSum] = square_sum;
    span.next(Phase::wait);
    group_.barrier(deadline(), "gradient norm");
    span.next(Phase::optimizer);
    const double norm = gradient_norm();
    const optimizer::UpdateScalars scalars{
        .lr = plan.lr,
        .step = age_.updates + 1,
        .gradient_scale = optimizer::clip_scale(norm, plan.clip_norm)};
    begin_update(plan.step, {.scalars = scalars, .summed = true});
    const auto sums = space_.memory().gradients;
    update_.for_each_block([&](collective::Segment block) {
      update_.apply(block, sums.subspan(block.begin, block.size()), scalars);
    });
  }

  void begin_update(std::int64_t step, const collective::UpdateJournal::Plan& plan) {
    if (!has_begun_) record_->begin(context_.generation);
    has_begun_ = true;
    update_.begin(static_cast<std::uint64_t>(step + 1), plan);
  }

  // After the last step of this group: makes the model whole and tells how far it has come.
  void write_record() {
    const auto finished = finish_step_begun();
    finished ? record_->write(*finished, next_means_) : record_->write(age_, buffer_means_);
  }

  // Finishes a step that some rank has begun to apply. How far the model has come then, with the
  // buffers in `next_means_`; nothing where no step was begun.
  std::optional<ModelAge> finish_step_begun() {
    const auto begun = update_.finish_begun(static_cast<std::uint64_t>(age_.step));
    if (!begun) return std::nullopt;
    const auto step = static_cast<std::int64_t>(begun->number);
    // Who has arrived behind the update cannot rely on others' buffers any more, but has the means.
    if (averaged_step_ != step) average_buffers(next_means_);
    return ModelAge{.step = step, .updates = begun->plan.scalars.step};
  }

  void set_age(tensor::TrainingState& state, const ModelAge& age) const {
    state.step = age.step;
    state.updates = age.updates;
    state.work = work_after(age.step, context_.parts);
  }

  double gradient_norm() const {
    double square_sum = 0;
    for (int rank = 0; rank < group_.world(); ++rank) square_sum += group_.note(rank)[kSquareSum];
    return std::sqrt(square_sum);
  }

  StrategyContext context_;
  tensor::ModelLayout layout_;
  std::size_t floats_;
  std::size_t slots_;
  std::shared_ptr<os::SharedMemory>
      memory_;                         // Of record, parameters, slots, gradients and buffers.
  std::optional<ModelRecord> record_;  // In memory_; set by make_group().
  collective::HostReduction group_;
  std::vector<std::span<float>> changing_;  // In the shared area: parameters, then slots.
  collective::HostUpdate update_;
  ModelAge age_;
  tensor::FlatSpace space_;
  std::int64_t first_step_;
  std::vector<float> buffer_means_;  // Of the last step that was applied.
  std::vector<float> next_means_;    // Of step `averaged_step_`.
  std::int64_t averaged_step_ = -1;
  bool has_begun_ = false;  // To change the model.
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_in_place(const StrategyContext& context) {
  return std::make_unique<AllreduceInPlace>(context);
}

}  // namespace cohort::strategy
