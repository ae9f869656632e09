#include "strategy/allreduce/allreduce_in_place.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/failpoint.h"
#include "collective/host/host_reduction.h"
#include "collective/host/update_journal.h"
#include "optimizer/square_sum.h"
#include "strategy/allreduce/model_record.h"
#include "strategy/model_state.h"

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

// Notes a rank leaves for the others, see HostReduction::note. Rank 0's last two are of the first
// model.
enum Note { kLoss, kStop, kSquareSum, kStep, kUpdates };

// The blocks of a segment, one after the other.
class Blocks {
 public:
  explicit Blocks(Segment segment) : segment_(segment) {}

  std::size_t count() const { return (segment_.size() + kBlock - 1) / kBlock; }
  Segment operator[](std::size_t index) const {
    const std::size_t begin = segment_.begin + index * kBlock;
    return {begin, std::min(begin + kBlock, segment_.end)};
  }

 private:
  Segment segment_;
};

// Of each vector the floats of one block.
void cut(std::span<const std::span<float>> vectors, Segment block,
         std::vector<std::span<float>>& parts) {
  parts.clear();
  for (const auto vector : vectors) parts.push_back(vector.subspan(block.begin, block.size()));
}

class AllreduceInPlace : public Strategy {
 public:
  explicit AllreduceInPlace(const StrategyContext& context)
      : context_(context),
        layout_(ModelLayout::of(context.model)),
        floats_(layout_.parameters.size),
        slots_(context.optimizer.slots().size()),
        group_(make_group()),
        journal_(make_journal()),
        changing_(changing()),
        space_(context.model, first_model()),
        first_step_(age_.step),
        buffer_means_(space_.memory().buffers.begin(), space_.memory().buffers.end()),
        next_means_(buffer_means_.size()),
        scratch_(kBlock) {}

  // Counted as if sent: what this rank read of the others' gradients, and they of its.
  StrategyReport report() const override { return {words(), {bytes_read_, bytes_read_}}; }

  FlatSpace& space() override { return space_; }

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

  void sum_over_workers(Numbers numbers) override { group_.small_sum(numbers, deadline()); }

  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return false; }

  // No other rank can change the parameters before this one comes to the next step's barrier.
  void save_state(TrainingState& state) override {
    save_model({.parameters = changing_.front(),
                .slots = {changing_.begin() + 1, changing_.end()},
                .buffers = buffer_means_},
               state);
    set_age(state, age_);
    state.own.clear();
  }

  // The model stays where it is. It is made whole there, so that whoever is left can take over
  // should this worker be lost as well.
  void carry_state(TrainingState& state) override {
    if (record_->is_changed_by(context_.epoch)) write_record();
    if (!record_->holds()) {
      fail(ErrorCode::corrupt, "a later group of workers has changed the model of group {}",
           context_.epoch);
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
  HostReduction make_group() {
    Engine& engine = context_.engine;
    SharedRegions* regions = engine.shared_regions();
    if (regions == nullptr) {
      fail(ErrorCode::unsupported, "engine {} shares no memory", engine.name());
    }
    const HostReduction::Shape shape{.world = engine.world(),
                                     .contribution = floats_ + layout_.buffers.size,
                                     .shared = floats_ * (1 + slots_)};
    if (engine.rank() == 0 && context_.start != nullptr) memory_ = context_.start->shared;
    const std::size_t record = ModelRecord::bytes_needed(layout_.buffers.size);
    const auto lasting =
        regions->lasting_region(record + HostReduction::floats_bytes(shape), memory_, deadline());
    record_.emplace(lasting, layout_.buffers.size);
    const auto control = regions->region(HostReduction::control_bytes(shape), deadline());
    return HostReduction(engine.rank(), shape, control, lasting.subspan(record), regions->watch(),
                         wait_policy(engine.world(), context_.cores));
  }

  // A rank alone has nobody who could finish what it began.
  std::optional<UpdateJournal> make_journal() {
    if (group_.world() == 1) return std::nullopt;
    const UpdateJournal::Shape shape{
        .world = group_.world(), .block = std::min(kBlock, floats_), .vectors = 1 + slots_};
    return UpdateJournal(
        group_.rank(), shape,
        context_.engine.shared_regions()->region(UpdateJournal::bytes_needed(shape), deadline()));
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
  FlatMemory first_model() {
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
             context_.start->step, context_.epoch);
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
      outcome.loss += note[kLoss];
      outcome.stop |= note[kStop] != 0;
      if (!std::isfinite(note[kLoss]) && outcome.diverged_rank < 0) outcome.diverged_rank = rank;
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
    const UpdateScalars scalars{.lr = plan.lr, .step = age_.updates + 1, .gradient_scale = 1};
    begin_update(plan.step, {.scalars = scalars});
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
    const UpdateScalars scalars{.lr = plan.lr,
                                .step = age_.updates + 1,
                                .gradient_scale = clip_scale(norm, plan.clip_norm)};
    begin_update(plan.step, {.scalars = scalars, .summed = true});
    for_each_block([&](Segment block) {
      update(block, gradients.subspan(block.begin, block.size()), scalars);
    });
  }

  template <class Visit>
  void for_each_block(Visit&& visit) const {
    const Blocks blocks(group_.owned(floats_));
    for (std::size_t i = 0; i < blocks.count(); ++i) visit(blocks[i]);
  }

  // This block of the sum of all gradients: in `target`, or where it stands when there is one rank.
  std::span<const float> summed(Segment block, std::span<float> target) {
    if (group_.world() == 1) return space_.memory().gradients.subspan(block.begin, block.size());
    const auto sums = target.first(block.size());
    group_.sum_contributions(block, sums);
    bytes_read_ += sums.size_bytes() * static_cast<std::size_t>(group_.world() - 1);
    return sums;
  }

  void begin_update(std::int64_t step, const UpdateJournal::Plan& plan) {
    if (!has_begun_) record_->begin(context_.epoch);
    has_begun_ = true;
    if (journal_) journal_->begin(static_cast<std::uint64_t>(step + 1), plan);
  }

  void update(Segment block, std::span<const float> gradients, const UpdateScalars& scalars) {
    failpoint("allreduce.in-update");
    cut(changing_, block, block_parts_);
    if (journal_) journal_->keep(block_parts_);
    apply(block_parts_, gradients, scalars);
    failpoint("allreduce.in-block");
    if (journal_) journal_->done();
  }

  // After the last step of this group: makes the model whole and tells how far it has come.
  void write_record() {
    const auto finished = journal_ ? finish_step_begun() : std::nullopt;
    finished ? record_->write(*finished, next_means_) : record_->write(age_, buffer_means_);
  }

  void apply(std::span<const std::span<float>> parts, std::span<const float> gradients,
             const UpdateScalars& scalars) const {
    context_.optimizer.update(parts.front(), gradients, parts.subspan(1), scalars);
  }

  // Where some rank has begun to apply a step, all gradients of it were there: what ranks have not
  // done of it is done for them, with their notes, so that this may be broken off as well. How far
  // the model has come then, with the buffers in `next_means_`; nothing where no step was begun.
  std::optional<ModelAge> finish_step_begun() {
    UpdateJournal::Progress begun;
    for (int rank = 0; rank < group_.world(); ++rank) {
      const auto progress = journal_->progress(rank);
      if (progress.number > begun.number) begun = progress;
    }
    const auto step = static_cast<std::int64_t>(begun.number);
    if (step <= age_.step) return std::nullopt;
    for (int rank = 0; rank < group_.world(); ++rank) finish_part_of(rank, begun);
    // Who has arrived behind the update cannot rely on others' buffers any more, but has the means.
    if (averaged_step_ != step) average_buffers(next_means_);
    return ModelAge{.step = step, .updates = begun.plan.scalars.step};
  }

  void finish_part_of(int rank, const UpdateJournal::Progress& begun) {
    const Blocks blocks(segment_of(floats_, group_.world(), rank));
    auto notes = journal_->acting_for(rank);
    if (notes.progress(rank).number != begun.number) notes.begin(begun.number, begun.plan);
    const auto progress = notes.progress(rank);
    for (std::size_t i = progress.blocks; i < blocks.count(); ++i) {
      cut(changing_, blocks[i], block_parts_);
      if (progress.in_block && i == progress.blocks) {
        notes.restore(rank, block_parts_);
      } else {
        notes.keep(block_parts_);
      }
      apply(block_parts_, summed_of(rank, blocks[i], begun.plan), begun.plan.scalars);
      failpoint("allreduce.in-carry");
      notes.done();
    }
  }

  // This block of the sum of all gradients, as its owner would have it.
  std::span<const float> summed_of(int rank, Segment block, const UpdateJournal::Plan& plan) {
    if (plan.summed) return group_.contribution(rank).subspan(block.begin, block.size());
    const auto sums = std::span(scratch_).first(block.size());
    group_.sum_contributions(block, sums);
    return sums;
  }

  void set_age(TrainingState& state, const ModelAge& age) const {
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
  ModelLayout layout_;
  std::size_t floats_;
  std::size_t slots_;
  std::shared_ptr<SharedMemory> memory_;  // Of record, parameters, slots, gradients and buffers.
  std::optional<ModelRecord> record_;
  HostReduction group_;
  std::optional<UpdateJournal> journal_;
  std::vector<std::span<float>> changing_;
  ModelAge age_;
  FlatSpace space_;
  std::int64_t first_step_;
  std::vector<float> buffer_means_;  // Of the last step that was applied.
  std::vector<float> next_means_;    // Of step `averaged_step_`.
  std::int64_t averaged_step_ = -1;
  bool has_begun_ = false;  // To change the model.
  std::vector<float> scratch_;
  std::vector<std::span<float>> block_parts_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_in_place(const StrategyContext& context) {
  return std::make_unique<AllreduceInPlace>(context);
}

}  // namespace cohort
