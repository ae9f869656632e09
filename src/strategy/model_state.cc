#include "strategy/model_state.h"

#include <algorithm>

#include "base/fail.h"
#include "strategy/allreduce/compression_memory.h"

namespace cohort {
namespace {

void copy_whole(const char* what, std::span<const float> from, std::span<float> to) {
  if (from.size() != to.size()) {
    fail(ErrorCode::invalid,
         "the state to go on from has {} {} where the model has {}: it is of another model",
         from.size(), what, to.size());
  }
  std::ranges::copy(from, to.begin());
}

/// The slots to go on from. One worker's gradients need not travel, so the momentum that it had
/// before a codec, when there were others, is its optimizer's.
std::vector<std::vector<float>> slots_of(const TrainingState& start, const ModelMemory& memory,
                                         int world) {
  if (!start.slots.empty() || world > 1 || memory.slots.size() != 1) return start.slots;
  const auto before = CompressionMemory::read(&start);
  if (!before || before->exchange.velocity.empty()) return {};
  return {before->exchange.velocity};
}

}  // namespace

ModelAge load_start(const StrategyContext& context, const ModelMemory& memory) {
  for (const auto slot : memory.slots) std::ranges::fill(slot, 0.0F);
  if (context.start == nullptr) {
    copy_values(context.model,
                {.parameters = memory.parameters, .gradients = {}, .buffers = memory.buffers});
    return {};
  }
  const TrainingState& start = *context.start;
  copy_whole("parameters", start.parameters, memory.parameters);
  copy_whole("floats of buffers", start.buffers, memory.buffers);
  const auto slots = slots_of(start, memory, context.engine.world());
  if (slots.empty() && !memory.slots.empty()) {
    // Slots that are zero are those of an optimizer that has made no update yet.
    return {.step = start.step, .updates = 0};
  }
  if (slots.size() != memory.slots.size()) {
    fail(ErrorCode::invalid,
         "the state to go on from has {} optimizer slots where the optimizer has {}: it is of "
         "another optimizer",
         slots.size(), memory.slots.size());
  }
  for (std::size_t slot = 0; slot < memory.slots.size(); ++slot) {
    copy_whole("floats of an optimizer slot", slots[slot], memory.slots[slot]);
  }
  return {.step = start.step, .updates = start.updates};
}

void save_model(const ModelMemory& memory, TrainingState& state) {
  const auto copy = [](std::span<const float> from, std::vector<float>& to) {
    to.assign(from.begin(), from.end());
  };
  copy(memory.parameters, state.parameters);
  copy(memory.buffers, state.buffers);
  state.slots.resize(memory.slots.size());
  for (std::size_t slot = 0; slot < memory.slots.size(); ++slot) {
    copy(memory.slots[slot], state.slots[slot]);
  }
}

WorkLeft work_after(std::int64_t step, std::int64_t parts) {
  return {.next = step * parts, .parts = parts, .again = {}};
}

}  // namespace cohort
