#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/failpoint.h"
#include "base/log.h"
#include "collective/bucket_reducer.h"
#include "collective/compressed/gradient_exchange.h"
#include "collective/sum_kernel.h"
#include "strategy/allreduce/compression_trial.h"
#include "strategy/allreduce/lockstep_model.h"
#include "strategy/compressed_gradients.h"
#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

const std::string kAuto = "auto";
const std::string kNone = "none";

/// What auto tries, the plain way first.
std::vector<std::string> candidates() {
  return {kNone, "bf16", "int8", "topk"};
}

/// Synchronous data parallelism with gradients that travel encoded, in the way that fits the codec
/// (gradient_exchange.h); what a message leaves out is added to the next gradients. Votes and float
/// buffers travel as they are. Every rank decodes the same bits and makes the same update.
///
/// A step: the tail (buffers, votes) is summed first; where no rank has diverged the exchange sums
/// the gradients, and all update. The votes come first because an exchange remembers what it has
/// left out.
///
/// topk and sign with SGD's plain momentum: the momentum is applied before gradients are encoded
/// (corrects_momentum()), and the update is made without it, by `own_optimizer_`.
///
/// With compression "auto" the first steps try plain messages (in buckets, during the backward pass
/// where the network does the sending) and some codecs, and then keep to the fastest
/// (CompressionTrial). *Left over* is what a way that is no longer used has not sent; it is added
/// to the gradients of the next step, which for that reason do not travel during the backward pass.
///
/// What each worker has alone (rest, velocity, the choice of auto) is saved and carried by every
/// worker, as CompressionMemory. A worker that loses a peer within a step cannot know whether
/// others have finished that step with what it has sent; so it carries both memories, and the step
/// that the next group begins with says which one counts.
class AllreduceCompressed : public Strategy {
 public:
  explicit AllreduceCompressed(const StrategyContext& context)
      : context_(context),
        transport_(connect()),
        plain_transport_(is_auto() ? connect() : nullptr),
        model_(context) {
    first_step_ = model_.step();
    if (!is_alone()) begin_sending();
    take_over();
  }

  ~AllreduceCompressed() override { AllreduceCompressed::close(); }

  StrategyReport report() const override { return {words(), traffic()}; }

  tensor::FlatSpace& space() override { return model_.space(); }

  void begin_last_backward(const Vote& vote) override {
    backward_began_ = Clock::now();
    // What other ways have left over cannot be added to gradients that travel already.
    in_buckets_ = reducer_ && compression_.kind == kNone && left_over_.empty();
    if (in_buckets_) reducer_->begin_step();
    model_.put_vote(vote);
    model_.space().begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    model_.space().finish_step();
    failpoint("allreduce.before-gradients");
    PhaseSpan span(context_.phases, Phase::communication);
    StepOutcome outcome = in_buckets_ ? sum_in_buckets() : sum_encoded();
    const double seconds = seconds_since(backward_began_);
    if (outcome.diverged_rank >= 0) return outcome;
    span.next(Phase::optimizer);
    model_.update(own_optimizer_ ? *own_optimizer_ : context_.optimizer, plan, outcome);
    left_over_ = std::vector<float>();
    failpoint("allreduce.after-update");
    span.next(Phase::communication);
    if (trial_) go_on_trying(seconds);
    return outcome;
  }

  void sum_over_workers(collective::Numbers numbers) override { model_.sums().sum(numbers); }

  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return true; }
  bool all_save() const override { return true; }

  void save_state(tensor::TrainingState& state) override {
    model_.save(state);
    // The momentum that is applied is this worker's own.
    if (own_optimizer_) state.slots.clear();
    state.own = memory().as_own();
  }

  /// The model is the same on all.
  void save_own_state(tensor::TrainingState& state) override {
    state = tensor::TrainingState();
    state.step = model_.step();
    state.own = memory().as_own();
  }

  /// Also what this worker would keep had it finished the step that it was lost in: see above.
  void carry_state(tensor::TrainingState& state) override {
    save_state(state);
    CompressionMemory own = memory();
    if (exchange_) own.if_done = exchange_->memory_if_done();
    state.own = own.as_own();
  }

  void close() noexcept override {
    transport_->close();
    if (plain_transport_) plain_transport_->close();
    model_.sums().close();
  }

 private:
  std::string words() const {
    if (is_alone()) return "one worker, whose gradients need not travel";
    const std::string where =
        fmt::format("over {}, {} workers", context_.engine.name(), context_.engine.world());
    if (trial_) {
      return fmt::format("all-reduce {}: the first steps try {} and keep to the fastest", where,
                         fmt::join(trial_->kinds(), ", "));
    }
    return fmt::format("all-reduce {} of compressed gradients: {}{}{}", where,
                       collective::exchange_words(compression_),
                       own_optimizer_ ? ", momentum before it" : "", picked_);
  }

  Traffic traffic() const {
    Traffic all = model_.sums().traffic();
    for (const auto* transport : {transport_.get(), plain_transport_.get()}) {
      if (transport == nullptr) continue;
      all += transport->traffic();
    }
    return all;
  }

  bool is_alone() const { return context_.engine.world() == 1; }
  bool is_auto() const { return context_.options.compression.kind == kAuto; }
  std::unique_ptr<transport::Transport> connect() const {
    return context_.engine.connect(context_.timeout.deadline());
  }

  void begin_sending() {
    if (is_auto()) {
      reducer_.emplace(*plain_transport_, model_.travelling(),
                       model_.buckets(context_.options.bucket_bytes),
                       plain_bucket_options(context_));
      model_.space().on_gradient_ready([this](std::size_t parameter) {
        if (in_buckets_) reducer_->parameter_ready(parameter);
      });
      // It may end up with plain gradients.
      model_.space().let_gradients_travel(context_.engine.sends_in_background());
    }
    const std::string kind = is_auto() ? agreed_choice() : context_.options.compression.kind;
    if (kind.empty()) trial_.emplace(candidates(), context_.steps - first_step_);
    use(trial_ ? trial_->current() : kind);
  }

  StepOutcome sum_in_buckets() {
    reducer_->wait();
    return model_.count_votes();
  }

  /// The votes come first: gradients of a step that will not be applied must not be remembered.
  StepOutcome sum_encoded() {
    model_.sums().sum(model_.tail());
    const StepOutcome outcome = model_.count_votes();
    if (outcome.diverged_rank >= 0) return outcome;
    if (!left_over_.empty()) collective::add_to(model_.gradients(), left_over_);
    if (is_alone()) return outcome;
    exchange_->sum(model_.gradients());
    // Some codecs know no zero, but the floats between two tensors must stay zero.
    clear_padding(model_.layout().parameters, model_.gradients());
    return outcome;
  }

  /// auto: the choice that was made before this group of workers was formed, rank 0's for all;
  /// empty where none was.
  std::string agreed_choice() {
    const auto all = candidates();
    const auto saved = CompressionMemory::read(context_.start);
    const auto found =
        std::ranges::find(all, saved && saved->is_auto ? saved->compression : std::string());
    std::array<std::int64_t, 1> choice = {found - all.begin()};
    model_.sums().take_first(choice);
    if (choice[0] == static_cast<std::int64_t>(all.size())) return {};
    picked_ = fmt::format(" (picked {} before)", all[static_cast<std::size_t>(choice[0])]);
    return all[static_cast<std::size_t>(choice[0])];
  }

  /// Goes on with what this worker had not sent when the last group of workers ended.
  void take_over() {
    auto saved = CompressionMemory::read(context_.start);
    if (saved && saved->if_done && first_step_ > context_.start->step) {
      saved->exchange = *saved->if_done;
    }
    const bool same = saved && !is_alone() && !trial_ && saved->compression == compression_.kind;
    if (exchange_) exchange_->recall(same ? saved->exchange : momentum_of_the_optimizer());
    if (saved && !same && saved->exchange.rest.size() == model_.gradients().size()) {
      left_over_ = saved->exchange.rest;
    }
    // How gradients travel depends on it, so where one worker has some all have.
    if (model_.sums().any(!left_over_.empty())) left_over_.resize(model_.gradients().size());
  }

  /// Where momentum comes before the codec and was the optimizer's so far, as it is with one
  /// worker: a worker has all of it, and the sum is what it was.
  collective::ExchangeMemory momentum_of_the_optimizer() const {
    const tensor::TrainingState* start = context_.start;
    collective::ExchangeMemory memory;
    const bool takes_it = own_optimizer_ && context_.engine.rank() == 0 && start != nullptr &&
                          start->slots.size() == 1 &&
                          start->slots[0].size() == model_.gradients().size();
    if (takes_it) memory.velocity = start->slots[0];
    return memory;
  }

  CompressionMemory memory() const {
    CompressionMemory own{.compression = trial_ || is_alone() ? "" : compression_.kind,
                          .is_auto = is_auto(),
                          .exchange = {}};
    if (exchange_) own.exchange = exchange_->memory();
    if (!left_over_.empty()) {
      own.exchange.rest.resize(left_over_.size());
      collective::add_to(own.exchange.rest, left_over_);
    }
    return own;
  }

  /// From the next step on gradients travel in this way.
  void use(const std::string& kind) {
    if (exchange_ && compression_.kind != kNone) {
      left_over_.resize(model_.gradients().size());
      exchange_->add_rest(left_over_);
    }
    StrategyOptions options = context_.options;
    options.compression.kind = kind;
    compression_ = options.compression;
    // While trying, momentum stays with the optimizer, which all ways can use.
    const bool corrects = !trial_ && corrects_momentum(options, context_.optimizer_options);
    if (corrects)
      own_optimizer_ =
          optimizer::make_optimizer(optimizer::without_momentum(context_.optimizer_options));
    exchange_ = collective::make_gradient_exchange(
        {.transport = *transport_,
         .shape = codec_shape(model_.layout().parameters),
         .compression = compression_,
         .momentum =
             corrects ? worker_momentum(context_.optimizer_options) : compression::WorkerMomentum(),
         .seed = context_.seed,
         .algorithm = context_.options.algorithm,
         .timeout = context_.timeout.usual()});
  }

  /// `seconds` is from the beginning of the backward pass, with which plain buckets share a core.
  void go_on_trying(double seconds) {
    const std::string before = trial_->current();
    trial_->record(slowest(seconds));
    if (trial_->done()) return pick();
    if (trial_->current() != before) use(trial_->current());
  }

  /// The largest of the ranks' values, the same on all.
  double slowest(double seconds) {
    std::vector<float> all(static_cast<std::size_t>(context_.engine.world()));
    all[static_cast<std::size_t>(context_.engine.rank())] = static_cast<float>(seconds);
    model_.sums().sum(all);
    return std::ranges::max(all);
  }

  void pick() {
    const std::string kind = trial_->kinds()[trial_->pick()];
    picked_ = fmt::format(" (picked {}: {})", kind, times_in_words());
    if (context_.engine.rank() == 0) log_info("compression auto{}", picked_);
    trial_.reset();
    use(kind);
  }

  std::string times_in_words() const {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < trial_->kinds().size(); ++i) {
      const double seconds = trial_->seconds()[i];
      words.push_back(std::isinf(seconds)
                          ? fmt::format("{} not timed", trial_->kinds()[i])
                          : fmt::format("{} {:.1f} ms", trial_->kinds()[i], seconds * 1e3));
    }
    return fmt::format("{} a step", fmt::join(words, ", "));
  }

  StrategyContext context_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<transport::Transport>
      plain_transport_;  // auto: for buckets, on a thread of their own.
  LockstepModel model_;
  std::int64_t first_step_ = 0;
  CompressionOptions compression_;  // In use now.
  std::unique_ptr<collective::GradientExchange> exchange_;
  std::unique_ptr<optimizer::Optimizer>
      own_optimizer_;                      // Without momentum, where that comes before the codec.
  std::optional<CompressionTrial> trial_;  // auto: while it lasts.
  std::string picked_;                     // auto: what was picked and why.
  std::vector<float> left_over_;           // By ways that are not used any more.
  Clock::time_point backward_began_;
  bool in_buckets_ = false;  // In this step gradients travel plain, bucket by bucket.
  std::optional<collective::BucketReducer> reducer_;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_compressed(const StrategyContext& context) {
  return std::make_unique<AllreduceCompressed>(context);
}

}  // namespace cohort::strategy
