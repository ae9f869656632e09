#include "launch/control/control_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <thread>

#include "base/fail.h"

namespace cohort {

void put_text(std::span<char> target, const std::string& text) {
  const std::size_t length = std::min(text.size(), target.size() - 1);
  std::copy_n(text.begin(), length, target.begin());
  target[length] = '\0';
}

void TaskSlot::fail_with(const Error& problem) {
  error_code = static_cast<int>(problem.code());
  error_rank = problem.rank().value_or(-1);
  put_text(error, problem.what());
  state.store(WorkerState::failed);
}

ControlBlock::ControlBlock(int max_workers, int servers) {
  const auto workers = static_cast<std::size_t>(max_workers);
  const auto server_count = static_cast<std::size_t>(servers);
  constexpr std::size_t kHeaderBytes = 128;
  static_assert(sizeof(Header) <= kHeaderBytes && alignof(WorkerSlot) <= kHeaderBytes);
  static_assert(sizeof(WorkerSlot) % alignof(ServerSlot) == 0);
  constexpr std::size_t kLine = 64;
  const std::size_t slot_bytes =
      kHeaderBytes + workers * sizeof(WorkerSlot) + server_count * sizeof(ServerSlot);
  const std::size_t losses_begin = (slot_bytes + kLine - 1) / kLine * kLine;
  bytes_ = losses_begin + workers * LossQueue::bytes_needed();
  // Most of the queues is never touched.
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail_errno("cannot share memory with the workers");
  header_ = new (memory) Header;
  auto* slots = reinterpret_cast<WorkerSlot*>(static_cast<std::byte*>(memory) + kHeaderBytes);
  for (std::size_t i = 0; i < workers; ++i) new (slots + i) WorkerSlot;
  slots_ = {slots, workers};
  auto* server_slots = reinterpret_cast<ServerSlot*>(slots + workers);
  for (std::size_t i = 0; i < server_count; ++i) new (server_slots + i) ServerSlot;
  servers_ = {server_slots, server_count};
  losses_ = static_cast<std::byte*>(memory) + losses_begin;
}

// The order matters: to show, then to look; and for the launcher to say that there is a stop, then
// to look. So at least one of the two sees the other.
bool ControlBlock::may_head_for(WorkerSlot& slot, std::int64_t steps) const {
  slot.heading_for.store(steps);
  if (!header_->stop.load()) return true;
  std::int64_t last = header_->last_step.load();
  for (; last < 0; last = header_->last_step.load()) std::this_thread::yield();
  return steps <= last;
}

std::int64_t ControlBlock::furthest_step(std::span<const int> workers) const {
  std::int64_t furthest = 0;
  for (const int worker : workers) {
    furthest = std::max(furthest, slot(worker).heading_for.load());
  }
  return furthest;
}

ControlBlock::~ControlBlock() {
  ::munmap(header_, bytes_);
}

}  // namespace cohort
