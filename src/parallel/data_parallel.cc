#include <cohort/data_parallel.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/fail.h"
#include "parallel/gradient_average.h"
#include "parallel/gradient_memory.h"
#include "parallel/group_state.h"
#include "parallel/shared_model.h"
#include "parallel/step_turns.h"

namespace cohort {
namespace {

using parallel::GroupAccess;
using parallel::Turn;
using parallel::Weights;

std::vector<NamedTensor> named(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& item : tensors) result.push_back({item.key(), item.value()});
  return result;
}

}  // namespace

/// A step of the ranks together:
///
///   1. every rank collects its gradients in memory that the ranks of a host share
///   2. all show each other their turns, and which parameters have a gradient
///   3. the gradients become their average
///   4. the parameters that have one on any rank get it
///   5. buffers, as the options say
///
/// With one rank there is nothing to do, and no memory.
struct DataParallel::State {
  State(const Group& the_group, std::vector<NamedTensor> the_parameters,
        std::vector<NamedTensor> the_buffers, const DataParallelOptions& the_options)
      : group(the_group),
        parameters(parallel::each_once(std::move(the_parameters))),
        buffers(parallel::each_once(std::move(the_buffers))),
        options(the_options),
        module(number_of_this_group()) {
    for (const NamedTensor& one : parameters) {
      (one.tensor.requires_grad() ? trained : frozen).push_back(one);
    }
    if (group.world() > 1) parallel::check_same_model(group, parameters, buffers, options);
    parallel::check_options(options);
    if (group.world() == 1) return;
    parallel::share_values(group, parameters, 0);
    parallel::share_values(group, buffers, 0);
    memory = std::make_unique<parallel::GradientMemory>(group, trained);
    average = parallel::make_gradient_average(group, options, *memory);
    std::size_t& most = GroupAccess::state(group).most_parameters;
    most = std::max(most, memory->size());
  }

  void wait(Turn::Kind kind, std::int64_t value) {
    if (value < 0) fail(ErrorCode::invalid, "wait() with {} rows", value);
    if (*pauses > 0) return;
    check_still_frozen();
    if (group.world() == 1) return;
    together(group, [&] {
      forget_used();
      memory->collect(used);
      const std::vector<Turn> turns = take_turns({.module = module, .kind = kind, .value = value});
      ++steps;
      make_step(turns);
    });
  }

  /// Several modules whose ranks run out of batches together: one at a time, as the others go on.
  static void finish(std::span<State* const> all, const std::function<void(std::size_t)>& step) {
    const Group& group = all.front()->group;
    if (group.world() > 1) together(group, [&] { finish_together(all, step); });
  }

  const Group group;
  const std::vector<NamedTensor> parameters;
  const std::vector<NamedTensor> buffers;
  const DataParallelOptions options;
  const std::uint64_t module;
  const std::shared_ptr<int> pauses = std::make_shared<int>(0);
  std::vector<NamedTensor> trained;
  std::vector<NamedTensor> frozen;
  std::int64_t steps = 0;  ///< That its model has made together with others.
  std::unique_ptr<parallel::GradientMemory> memory;
  std::unique_ptr<parallel::GradientAverage> average;
  std::vector<std::uint8_t> used;  ///< By parameter; as long as that of any module of the group.
  std::vector<std::uint8_t> once_used;  ///< In this step or before; with error feedback only.

 private:
  /// What goes wrong on one rank in the middle of a step ends the group: the others wait for it.
  template <class Body>
  static void together(const Group& group, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      const Error reason = GroupAccess::communicator(group).end(error);
      if (error.code() == ErrorCode::peer_lost)
        throw reason;  // Whom it missed may have missed another.
      throw;
    } catch (const std::exception& error) {  // Of a reducer, or a step, of the program's own.
      GroupAccess::communicator(group).end(Error(ErrorCode::peer_lost, error.what()));
      throw;
    }
  }

  static void finish_together(std::span<State* const> all,
                              const std::function<void(std::size_t)>& step) {
    State& first = *all.front();
    const Turn own{.module = all.size() == 1 ? first.module : Turn::kAnyModule,
                   .kind = step ? Turn::Kind::follows : Turn::Kind::stands};
    for (;;) {
      for (const State* one : all) one->memory->drop();
      first.forget_used();
      const std::vector<Turn> turns = first.take_turns(own);
      if (parallel::all_have_run_out(turns)) break;
      const auto next = std::ranges::find(all, parallel::module_of(turns), &State::module);
      if (next == all.end()) {
        fail(ErrorCode::invalid,
             "the others wait for the gradients of module {}, which is not among those that this "
             "rank finishes",
             parallel::module_of(turns));
      }
      State& one = **next;
      one.used = first.used;
      one.make_step(turns);
      if (!step) continue;
      ++one.steps;
      step(static_cast<std::size_t>(next - all.begin()));
    }
    for (State* one : all) one->catch_up(own.kind);
  }

  /// Ranks of one program make their objects in the same order, so equal numbers are the same module.
  std::uint64_t number_of_this_group() const { return ++GroupAccess::state(group).modules; }

  /// What messages left out of a gradient comes with later ones, also in steps in which nobody has it.
  void expect_rests() {
    once_used.resize(memory->size());
    for (std::size_t i = 0; i < once_used.size(); ++i) {
      if (trained[i].tensor.scalar_type() != torch::kFloat32) continue;
      used[i] = once_used[i] = used[i] | once_used[i];
    }
  }

  void forget_used() { used.assign(GroupAccess::state(group).most_parameters, 0); }

  void check_still_frozen() const {
    for (const NamedTensor& one : frozen) {
      if (!one.tensor.requires_grad()) continue;
      fail(ErrorCode::invalid,
           "parameter {} was frozen when its DataParallel was made and is trained now: make a new "
           "one after changing what is trained",
           one.name);
    }
  }

  std::vector<Turn> take_turns(const Turn& own) {
    std::vector<Turn> turns = parallel::exchange_turns(GroupAccess::communicator(group), own, used);
    parallel::check_turns(turns);
    return turns;
  }

  void make_step(const std::vector<Turn>& turns) {
    const Weights weights = parallel::weights_of(turns);
    average->average(memory->flats(), weights);
    if (options.compression.kind != "none" && options.compression.error_feedback) expect_rests();
    memory->give(used);
    parallel::share_buffers(group, buffers, options.buffers, weights);
  }

  /// The model of a rank that stood still is that of a rank that did not, of which there is one:
  /// whoever had the most batches.
  void catch_up(Turn::Kind kind) {
    const std::vector<Turn> turns = take_turns({.module = module, .kind = kind, .value = steps});
    const auto furthest = std::ranges::max_element(turns, {}, &Turn::value);
    steps = furthest->value;
    const bool all_followed = std::ranges::none_of(
        turns, [](const Turn& turn) { return turn.kind == Turn::Kind::stands; });
    if (all_followed) return;
    const auto root = static_cast<int>(furthest - turns.begin());
    parallel::share_values(group, parameters, root);
    parallel::share_values(group, buffers, root);
  }
};

DataParallel::DataParallel(const Group& group, torch::nn::Module& module,
                           const DataParallelOptions& options)
    : DataParallel(group, named(module.named_parameters()), named(module.named_buffers()),
                   options) {}

DataParallel::DataParallel(const Group& group, std::vector<NamedTensor> parameters,
                           std::vector<NamedTensor> buffers, const DataParallelOptions& options)
    : state_(std::make_unique<State>(group, std::move(parameters), std::move(buffers), options)) {}

DataParallel::~DataParallel() = default;
DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;

void DataParallel::wait() {
  state_->wait(Turn::Kind::alike, 0);
}

void DataParallel::wait(std::int64_t rows) {
  state_->wait(Turn::Kind::rows, rows);
}

void DataParallel::finish(const std::function<void()>& step) {
  State* const one = state_.get();
  State::finish({&one, 1},
                step ? [&](std::size_t) { step(); } : std::function<void(std::size_t)>());
}

void DataParallel::finish_all(const std::vector<DataParallel*>& modules,
                              const std::function<void(std::size_t module)>& step) {
  if (modules.empty()) fail(ErrorCode::invalid, "finish_all() of no module");
  std::vector<State*> states;
  for (const DataParallel* one : modules) states.push_back(one->state_.get());
  const auto group_of = [](const State* one) { return &GroupAccess::state(one->group); };
  if (!std::ranges::all_of(states,
                           [&](State* one) { return group_of(one) == group_of(states.front()); })) {
    fail(ErrorCode::invalid, "modules of different groups are finished one after the other");
  }
  State::finish(states, step);
}

double DataParallel::clip_grad_norm(double most) {
  return parallel::clip_norm(state_->trained, most);
}

DataParallel::Pause::Pause(DataParallel& parallel) : pauses_(parallel.state_->pauses) {
  ++*pauses_;
}

DataParallel::Pause::~Pause() {
  --*pauses_;
}

DataParallel::Pause DataParallel::no_sync() {
  return Pause(*this);
}

}  // namespace cohort
