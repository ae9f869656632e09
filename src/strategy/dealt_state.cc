#include "strategy/dealt_state.h"

#include <algorithm>
#include <utility>

#include "gossip/claims.h"
#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

/// Empty vectors are of zeros; those of different sizes are of different things, and the first
/// stays.
void add_floats_to(std::vector<float>& sum, const std::vector<float>& values) {
  if (sum.empty()) {
    sum = values;
  } else if (sum.size() == values.size()) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
}

/// What compressed all-reduce has left out. Codecs remember by rank and world; lowrank's factors
/// are rank 0's for all.
void add_exchange(tensor::OwnMemory& sum, const tensor::TrainingState& state) {
  auto memory = CompressionMemory::read(&state);
  if (!memory || (!sum.empty() && sum.meaning != state.own.meaning)) return;
  tensor::TrainingState before;
  before.own = std::move(sum);
  if (auto own = CompressionMemory::read(&before)) {
    add_floats_to(own->exchange.rest, memory->exchange.rest);
    add_floats_to(own->exchange.velocity, memory->exchange.velocity);
    memory = std::move(own);
  }
  sum = memory->as_own();
}

/// Of gradients that peers were not told: the gradients, how many pieces they are of, their rate.
void add_untold(tensor::OwnMemory& sum, const tensor::OwnMemory& own) {
  if (own.floats.size() != 1 || own.doubles.size() != 2) return;
  if (sum.empty()) {
    sum = own;
    return;
  }
  if (sum.meaning != own.meaning) return;  // Of different things the first stays.
  const double pieces = sum.doubles[0] + own.doubles[0];
  const double rates = sum.doubles[0] * sum.doubles[1] + own.doubles[0] * own.doubles[1];
  add_floats_to(sum.floats[0], own.floats[0]);
  // Where a part of every piece was told, there are none to weigh the rates by.
  const double mean_rate = (sum.doubles[1] + own.doubles[1]) / 2;
  sum.doubles = {pieces, pieces > 0 ? rates / pieces : mean_rate};
}

/// What was pushed is left out as before; what the servers sent need not be known, since they send
/// the parameters themselves first.
void add_link(tensor::OwnMemory& sum, const tensor::OwnMemory& own) {
  auto link = any_link_of(own);
  if (!link) return;
  link->second.has.clear();
  link->second.codecs.resize(1);
  link->second.codecs[0] = {};
  if (const auto before = any_link_of(sum); before && before->first == link->first) {
    add_floats_to(link->second.rest, before->second.rest);
    add_floats_to(link->second.velocity, before->second.velocity);
  }
  sum = own_of_link(link->second, link->first);
}

}  // namespace

// Of vectors of another size, which are of other things, the first stays.
void DealtState::Mean::add(const std::vector<float>& values) {
  if (values.empty()) return;
  if (count > 0 && sum.size() != values.size()) return;
  sum.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
  ++count;
}

void DealtState::Mean::take(std::vector<float>& into) const {
  into.resize(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    into[i] = static_cast<float>(sum[i] / static_cast<double>(count));
  }
}

bool DealtState::gets_view_of(int from) const {
  if (place_.world >= place_.saved) return from == place_.rank % place_.saved;
  return from % place_.world == place_.rank;
}

bool DealtState::gets_leftovers_of(int from) const {
  return from % place_.world == place_.rank;
}

void DealtState::add(int from, tensor::TrainingState state) {
  add_velocity(state);
  if (gets_leftovers_of(from)) add_leftovers(state);
  if (gets_view_of(from)) add_view(std::move(state));
}

void DealtState::add_leftovers(const tensor::TrainingState& state) {
  if (state.own.meaning == kUntoldGradients) {
    add_untold(dealt_.own, state.own);
  } else {
    add_exchange(dealt_.own, state);
  }
  add_link(dealt_.link, state.link);
}

void DealtState::add_velocity(const tensor::TrainingState& state) {
  const auto own = own_floats(&state, kOwnVelocity);
  if (own.size() != 1) return;
  velocity_.resize(own[0].size());
  for (std::size_t i = 0; i < own[0].size(); ++i) velocity_[i] += own[0][i];
}

void DealtState::add_view(tensor::TrainingState state) {
  parameters_.add(state.parameters);
  buffers_.add(state.buffers);
  slots_.resize(std::max(slots_.size(), state.slots.size()));
  for (std::size_t slot = 0; slot < state.slots.size(); ++slot) slots_[slot].add(state.slots[slot]);
  if (state.own.meaning == kModelAge && state.own.doubles.size() == 1) {
    ages_.add({static_cast<float>(state.own.doubles[0])});
  }
  if (state.own.meaning == kOuterSlots && dealt_.own.empty()) dealt_.own = std::move(state.own);
  if (!has_view_) {
    dealt_.step = state.step;
    dealt_.work = state.work;
  }
  // Whoever has a model of its own knows what is in it; others only what they have heard of.
  if (!state.parameters.empty() && state.work.parts == dealt_.work.parts) {
    work_.push_back(state.work);
  }
  dealt_.updates = std::max(dealt_.updates, state.updates);
  if (!state.apart.empty()) dealt_.apart = std::move(state.apart);
  has_view_ = true;
}

// What is dealt as `own` is one thing only: leftovers, an age, a velocity or outer slots. A
// strategy writes one of them, so they do not meet.
tensor::TrainingState DealtState::take() {
  parameters_.take(dealt_.parameters);
  buffers_.take(dealt_.buffers);
  dealt_.slots.resize(slots_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) slots_[slot].take(dealt_.slots[slot]);
  if (work_.size() > 1) {
    dealt_.work = gossip::merged_work(work_);
    dealt_.step = gossip::whole_steps(dealt_.work);
  }
  if (ages_.count > 0) {
    dealt_.own = {.meaning = std::string(kModelAge),
                  .doubles = {ages_.sum[0] / static_cast<double>(ages_.count)}};
  }
  if (!velocity_.empty()) {
    std::vector<float> share(velocity_.size());
    for (std::size_t i = 0; i < share.size(); ++i) {
      share[i] = static_cast<float>(velocity_[i] / place_.world);
    }
    set_own(dealt_, kOwnVelocity, {share});
  }
  // Each one's is in its own model, of which the mean has a part: so it is said of how many.
  if (place_.world < place_.saved && dealt_.own.meaning == kUntoldGradients) {
    dealt_.own.numbers = {(place_.saved - place_.rank + place_.world - 1) / place_.world};
  }
  if (place_.rank >= place_.saved) dealt_.copy_of = place_.rank % place_.saved;
  return std::move(dealt_);
}

}  // namespace cohort::strategy
