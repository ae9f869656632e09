#include "strategy/model_state.h"

#include <algorithm>

#include "base/fail.h"
#include "gossip/claims.h"
#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

// Of ModelRecord: the header has a cache line, and what stands behind the record begins with a
// page.
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kRecordPage = 4096;

void copy_whole(const char* what, std::span<const float> from, std::span<float> to) {
  check_size(what, from.size(), to.size());
  std::ranges::copy(from, to.begin());
}

/// The slots to go on from. One worker's gradients need not travel, so the momentum that it had
/// before a codec, when there were others, is its optimizer's.
std::vector<std::vector<float>> slots_of(const tensor::TrainingState& start,
                                         const ModelMemory& memory, int world) {
  if (!start.slots.empty() || world > 1 || memory.slots.size() != 1) return start.slots;
  const auto before = CompressionMemory::read(&start);
  if (!before || before->exchange.velocity.empty()) return {};
  return {before->exchange.velocity};
}

}  // namespace

void check_size(const char* what, std::size_t found, std::size_t wanted) {
  if (found == wanted) return;
  fail(ErrorCode::invalid,
       "the state to go on from has {} {} where the model has {}: it is of another model", found,
       what, wanted);
}

// The one place where a strategy takes over what it goes on from. Slots may be missing where the
// parameters are not: the optimizer is another one than before, or has made no update; then it
// begins with zeros, and counts its updates from the first, as its bias correction needs it.
ModelAge load_start(const StrategyContext& context, const ModelMemory& memory) {
  for (const auto slot : memory.slots) std::ranges::fill(slot, 0.0F);
  if (context.start == nullptr) {
    tensor::copy_values(
        context.model,
        {.parameters = memory.parameters, .gradients = {}, .buffers = memory.buffers});
    return {};
  }
  const tensor::TrainingState& start = *context.start;
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

void save_model(const ModelMemory& memory, tensor::TrainingState& state) {
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

cluster::WorkLeft work_after(std::int64_t step, std::int64_t parts) {
  return {.next = step * parts, .parts = parts, .again = {}};
}

cluster::WorkLeft work_left(const tensor::TrainingState& state, std::int64_t parts) {
  if (state.work.parts == parts && gossip::whole_steps(state.work) == state.step) return state.work;
  return work_after(state.step, parts);
}

std::int64_t updates_before(const tensor::TrainingState& state, std::size_t slots) {
  return state.slots.size() < slots ? 0 : state.updates;
}

std::size_t ModelRecord::bytes_needed(std::size_t buffers) {
  static_assert(sizeof(Header) <= kHeaderBytes);
  return (kHeaderBytes + buffers * sizeof(float) + kRecordPage - 1) / kRecordPage * kRecordPage;
}

ModelRecord::ModelRecord(std::span<std::byte> memory, std::size_t buffers)
    : header_(reinterpret_cast<Header*>(memory.data())),
      buffers_(reinterpret_cast<float*>(memory.data() + kHeaderBytes), buffers) {}

void ModelRecord::begin(std::int64_t group) {
  header_->changed_by.store(group + 1, std::memory_order_seq_cst);
}

bool ModelRecord::is_changed_by(std::int64_t group) const {
  return !holds() && header_->changed_by.load(std::memory_order_acquire) == group + 1;
}

bool ModelRecord::holds() const {
  return header_->written_of.load(std::memory_order_acquire) ==
         header_->changed_by.load(std::memory_order_acquire);
}

void ModelRecord::write(const ModelAge& age, std::span<const float> buffers) {
  header_->age = age;
  std::ranges::copy(buffers, buffers_.begin());
  // Last: a record that is half written does not hold.
  header_->written_of.exchange(header_->changed_by.load(std::memory_order_acquire),
                               std::memory_order_acq_rel);
}

ModelAge ModelRecord::age() const {
  return header_->age;
}

}  // namespace cohort::strategy
