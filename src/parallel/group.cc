#include <cohort/group.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <utility>

#include "base/fail.h"
#include "parallel/arrays.h"
#include "parallel/group_state.h"

namespace cohort {
namespace {

using parallel::array_of;
using parallel::arrays_of;

/// Of those that people ask for: a moment later than that may be none that a clock has.
constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24 * 365);

group::Combine combine_of(Reduce how) {
  using collective::Reduction;
  switch (how) {
    case Reduce::sum:
      return {Reduction::sum};
    case Reduce::mean:
      return {Reduction::sum, /*mean=*/true};
    case Reduce::min:
      return {Reduction::min};
    case Reduce::max:
      return {Reduction::max};
    case Reduce::product:
      return {Reduction::product};
  }
  fail(ErrorCode::invalid, "there is no reduction of the number {}", static_cast<int>(how));
}

/// The shape of a part of a tensor that has one for every rank.
std::vector<std::int64_t> shape_of_part(const torch::Tensor& tensor, int world, const char* call) {
  if (tensor.dim() == 0 || tensor.size(0) % world != 0) {
    fail(ErrorCode::invalid,
         "{} between {} ranks needs a tensor whose first dimension can be divided by {}", call,
         world, world);
  }
  std::vector<std::int64_t> shape(tensor.sizes().begin(), tensor.sizes().end());
  shape.front() /= world;
  return shape;
}

}  // namespace

struct Work::State {
  std::shared_ptr<group::Communicator> communicator;  // Goes after what it has started.
  std::shared_ptr<group::Pending> pending;
};

Work::Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

void Work::wait() {
  state_->communicator->wait(*state_->pending);
}

void Work::wait(std::chrono::milliseconds at_most) {
  const auto bounded = std::clamp<std::chrono::milliseconds>(at_most, {}, kLongestWait);
  state_->communicator->wait(*state_->pending, Deadline::in(bounded));
}

Group::Group(std::shared_ptr<State> state) : state_(std::move(state)) {}

Group parallel::GroupAccess::make(std::shared_ptr<group::Communicator> communicator,
                                  std::shared_ptr<const void> meeting) {
  auto state = std::make_shared<Group::State>();
  state->engine = communicator->world() == 1 ? "alone" : communicator->engine().name();
  state->hosts = communicator->engine().hosts();
  state->communicator = std::move(communicator);
  state->meeting = std::move(meeting);
  return Group(std::move(state));
}

int Group::rank() const {
  return state_->communicator->rank();
}

int Group::world() const {
  return state_->communicator->world();
}

int Group::local_rank() const {
  const auto own = state_->hosts.begin() + rank();
  return static_cast<int>(std::count(state_->hosts.begin(), own, *own));
}

int Group::local_world() const {
  return static_cast<int>(std::ranges::count(state_->hosts, host_of(rank())));
}

int Group::hosts() const {
  return static_cast<int>(std::set<int>(state_->hosts.begin(), state_->hosts.end()).size());
}

int Group::host_of(int rank) const {
  if (rank < 0 || rank >= world()) {
    fail(ErrorCode::invalid, "there is no rank {} in a group of {}", rank, world());
  }
  return state_->hosts[static_cast<std::size_t>(rank)];
}

const std::string& Group::engine() const {
  return state_->engine;
}

void Group::barrier() const {
  state_->communicator->barrier();
}

void Group::all_reduce(const torch::Tensor& tensor, Reduce how) const {
  state_->communicator->all_reduce({array_of(tensor, "all_reduce")}, combine_of(how));
}

void Group::all_reduce(const std::vector<torch::Tensor>& tensors, Reduce how) const {
  state_->communicator->all_reduce(arrays_of(tensors, "all_reduce"), combine_of(how));
}

Work Group::all_reduce(const torch::Tensor& tensor, Reduce how, Async) const {
  return all_reduce(std::vector{tensor}, how, async);
}

Work Group::all_reduce(const torch::Tensor& tensor, Async) const {
  return all_reduce(tensor, Reduce::sum, async);
}

Work Group::all_reduce(const std::vector<torch::Tensor>& tensors, Reduce how, Async) const {
  return started(
      state_->communicator->start_all_reduce(arrays_of(tensors, "all_reduce"), combine_of(how)));
}

Work Group::all_reduce(const std::vector<torch::Tensor>& tensors, Async) const {
  return all_reduce(tensors, Reduce::sum, async);
}

void Group::broadcast(const torch::Tensor& tensor, int root) const {
  state_->communicator->broadcast({array_of(tensor, "broadcast")}, root);
}

void Group::broadcast(const std::vector<torch::Tensor>& tensors, int root) const {
  state_->communicator->broadcast(arrays_of(tensors, "broadcast"), root);
}

Work Group::broadcast(const torch::Tensor& tensor, int root, Async) const {
  return broadcast(std::vector{tensor}, root, async);
}

Work Group::broadcast(const std::vector<torch::Tensor>& tensors, int root, Async) const {
  return started(state_->communicator->start_broadcast(arrays_of(tensors, "broadcast"), root));
}

std::vector<torch::Tensor> Group::all_gather(const torch::Tensor& tensor) const {
  const torch::Tensor given = parallel::contiguous(tensor, "all_gather");
  std::vector<torch::Tensor> gathered;
  state_->communicator->all_gather(
      array_of(given, "all_gather"), [&](std::span<const std::int64_t> rows) {
        std::vector<std::int64_t> shape(given.sizes().begin(), given.sizes().end());
        for (const std::int64_t count : rows) {
          if (!shape.empty()) shape.front() = count;
          gathered.push_back(torch::empty(shape, given.options()));
        }
        return arrays_of(gathered, "all_gather");
      });
  return gathered;
}

torch::Tensor Group::reduce_scatter(const torch::Tensor& tensor, Reduce how) const {
  const torch::Tensor given = parallel::contiguous(tensor, "reduce_scatter");
  torch::Tensor part =
      torch::empty(shape_of_part(given, world(), "reduce_scatter"), given.options());
  state_->communicator->reduce_scatter(array_of(given, "reduce_scatter"),
                                       array_of(part, "reduce_scatter"), combine_of(how));
  return part;
}

torch::Tensor Group::all_to_all(const torch::Tensor& tensor) const {
  const torch::Tensor given = parallel::contiguous(tensor, "all_to_all");
  shape_of_part(given, world(), "all_to_all");
  torch::Tensor taken = torch::empty(given.sizes(), given.options());
  state_->communicator->all_to_all(array_of(given, "all_to_all"), array_of(taken, "all_to_all"));
  return taken;
}

void Group::send(const torch::Tensor& tensor, int peer) const {
  state_->communicator->send(array_of(parallel::contiguous(tensor, "send"), "send"), peer);
}

void Group::recv(const torch::Tensor& tensor, int peer) const {
  state_->communicator->receive(array_of(tensor, "recv"), peer);
}

Work Group::send(const torch::Tensor& tensor, int peer, Async) const {
  return started(state_->communicator->start_send(
      array_of(parallel::contiguous(tensor, "send"), "send"), peer));
}

Work Group::recv(const torch::Tensor& tensor, int peer, Async) const {
  return started(state_->communicator->start_receive(array_of(tensor, "recv"), peer));
}

Work Group::started(std::shared_ptr<group::Pending> pending) const {
  return Work(std::make_shared<Work::State>(Work::State{state_->communicator, std::move(pending)}));
}

std::string Group::broadcast(const std::string& bytes, int root) const {
  torch::Tensor size = torch::tensor({static_cast<std::int64_t>(bytes.size())}, torch::kInt64);
  broadcast(size, root);
  std::string all = rank() == root ? bytes : std::string();
  all.resize(static_cast<std::size_t>(size.item<std::int64_t>()));
  state_->communicator->broadcast({array_of(all)}, root);
  return all;
}

std::vector<std::string> Group::all_gather(const std::string& bytes) const {
  std::string given = bytes;
  std::vector<std::string> gathered;
  state_->communicator->all_gather(array_of(given), [&](std::span<const std::int64_t> rows) {
    for (const std::int64_t size : rows)
      gathered.emplace_back(static_cast<std::size_t>(size), '\0');
    std::vector<group::Array> arrays;
    for (std::string& one : gathered) arrays.push_back(array_of(one));
    return arrays;
  });
  return gathered;
}

torch::Tensor Group::empty(torch::IntArrayRef sizes, torch::ScalarType type) const {
  return parallel::tensor_in(state_->communicator->empty(parallel::element_type_of(type, "empty"),
                                                         {sizes.begin(), sizes.end()}));
}

Group Group::split(int color, int key) const {
  return parallel::GroupAccess::make(state_->communicator->split(color, key), state_->meeting);
}

void Group::split_without_me() const {
  state_->communicator->split(std::nullopt, 0);
}

}  // namespace cohort
