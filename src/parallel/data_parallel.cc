#include <cohort/data_parallel.h>

#include <algorithm>
#include <atomic>
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
        parameters(std::move(the_parameters)),
        buffers(std::move(the_buffers)),
        options(the_options),
        trained(parallel::trained_parameters(parameters)),
        module(number_of_this_group()) {
    if (group.world() == 1) return;
    parallel::check_same_model(group, parameters, buffers);
    parallel::share_values(group, parameters, 0);
    parallel::share_values(group, buffers, 0);
    memory = std::make_unique<parallel::GradientMemory>(group, trained);
    average = parallel::make_gradient_average(group, options, *memory);
    used.resize(memory->size());
  }

  void wait(Turn::Kind kind, std::int64_t value) {
    if (value < 0) fail(ErrorCode::invalid, "wait() with {} rows", value);
    if (group.world() == 1 || *pauses > 0) return;
    memory->collect(used);
    const std::vector<Turn> turns = take_turns(kind, value);
    ++steps;
    make_step(turns);
  }

  void finish(const std::function<void()>& step) {
    if (group.world() == 1) return;
    const Turn::Kind kind = step ? Turn::Kind::follows : Turn::Kind::stands;
    for (;;) {
      memory->clear();
      std::ranges::fill(used, 0);
      const std::vector<Turn> turns = take_turns(kind, steps);
      if (parallel::all_have_run_out(turns)) return catch_up(turns);
      make_step(turns);
      if (!step) continue;
      ++steps;
      step();
    }
  }

  const Group group;
  const std::vector<NamedTensor> parameters;
  const std::vector<NamedTensor> buffers;
  const DataParallelOptions options;
  const std::vector<NamedTensor> trained;
  const std::uint64_t module;
  const std::shared_ptr<int> pauses = std::make_shared<int>(0);
  std::int64_t steps = 0;  ///< That its model has made together with others.
  std::unique_ptr<parallel::GradientMemory> memory;
  std::unique_ptr<parallel::GradientAverage> average;
  std::vector<std::uint8_t> used;

 private:
  /// Ranks of one program make their objects in the same order, so equal numbers are the same module.
  std::uint64_t number_of_this_group() const { return ++GroupAccess::state(group).modules; }

  std::vector<Turn> take_turns(Turn::Kind kind, std::int64_t value) {
    std::vector<Turn> turns = parallel::exchange_turns(
        GroupAccess::communicator(group), {.module = module, .kind = kind, .value = value}, used);
    parallel::check_turns(turns);
    return turns;
  }

  void make_step(const std::vector<Turn>& turns) {
    const Weights weights = parallel::weights_of(turns);
    average->average(memory->flats(), weights);
    memory->give(used);
    parallel::share_buffers(group, buffers, options.buffers, weights);
  }

  /// The model of a rank that stood still is that of a rank that did not, of which there is one:
  /// whoever had the most batches.
  void catch_up(const std::vector<Turn>& turns) const {
    const bool all_followed = std::ranges::none_of(
        turns, [](const Turn& turn) { return turn.kind == Turn::Kind::stands; });
    if (all_followed) return;
    const auto furthest = std::ranges::max_element(turns, {}, &Turn::value);
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
  state_->finish(step);
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
