#include "strategy/server_state.h"

#include <algorithm>

#include "strategy/model_state.h"

namespace cohort {
namespace {

std::vector<float>& floats_of(ServerModel::Part& part, int slot) {
  if (slot == kParameters) return part.values;
  const auto index = static_cast<std::size_t>(slot);
  if (part.slots.size() <= index) part.slots.resize(index + 1);
  return part.slots[index];
}

}  // namespace

void to_servers(const ServerOrder& order, std::span<const float> state, ServerModel& model,
                int slot) {
  std::vector<float>& dense = floats_of(model.dense, slot);
  dense.resize(order.dense());
  order.take_dense(state, dense);
  model.tables.resize(order.tables());
  for (std::size_t i = 0; i < order.tables(); ++i) {
    std::vector<float>& table = floats_of(model.tables[i], slot);
    table.resize(order.table(i));
    order.take_table(i, state, table);
  }
}

void from_servers(const ServerOrder& order, ServerModel& model, int slot,
                  std::vector<float>& state) {
  std::vector<float>& dense = floats_of(model.dense, slot);
  dense.resize(order.dense());
  if (order.tables() == 0) return state.swap(dense);
  state.resize(order.floats());
  order.put_dense(dense, state);
  for (std::size_t i = 0; i < order.tables(); ++i) {
    std::vector<float>& table = floats_of(model.tables[i], slot);
    table.resize(order.table(i));
    order.put_table(i, table, state);
  }
}

std::int64_t steps_done(const WorkLeft& work) {
  std::int64_t steps = work.next / work.parts;
  for (const Claim& claim : work.again) steps = std::min(steps, claim.step);
  return steps;
}

WorkLeft work_left(const TrainingState& state, std::int64_t parts) {
  if (state.work.parts == parts && steps_done(state.work) == state.step) return state.work;
  return work_after(state.step, parts);
}

std::int64_t updates_before(const TrainingState& state, std::size_t slots) {
  return state.slots.size() < slots ? 0 : state.updates;
}

void set_own(TrainingState& state, std::string_view meaning,
             const std::vector<std::span<const float>>& floats) {
  state.own.meaning = meaning;
  state.own.doubles.clear();
  state.own.numbers.clear();
  state.own.floats.resize(floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    state.own.floats[i].assign(floats[i].begin(), floats[i].end());
  }
}

std::span<const std::vector<float>> own_floats(const TrainingState* state,
                                               std::string_view meaning) {
  const OwnMemory* own = own_of(state, meaning);
  return own != nullptr ? std::span(own->floats) : std::span<const std::vector<float>>();
}

}  // namespace cohort
