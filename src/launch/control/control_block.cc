#include "launch/control/control_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <thread>

#include "base/fail.h"

namespace cohort::launch {

namespace {

constexpr std::size_t kLine = 64;

/// Room in a piece of memory for one thing after the other, each on cache lines of its own.
class Layout {
 public:
  /// Where `bytes` begin.
  std::size_t take(std::size_t bytes) {
    const std::size_t begin = end_;
    end_ = (end_ + bytes + kLine - 1) / kLine * kLine;
    return begin;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

template <class Card>
std::span<Card> make_all(std::byte* memory, std::size_t count) {
  static_assert(alignof(Card) <= kLine);
  auto* cards = reinterpret_cast<Card*>(memory);
  for (std::size_t i = 0; i < count; ++i) new (cards + i) Card{};
  return {cards, count};
}

}  // namespace

ControlBlock::ControlBlock(int max_workers, int servers) {
  const auto workers = static_cast<std::size_t>(max_workers);
  const auto server_count = static_cast<std::size_t>(servers);
  Layout layout;
  const std::size_t header = layout.take(sizeof(Header));
  const std::size_t cards = layout.take(workers * sizeof(WorkerCard));
  const std::size_t server_cards = layout.take(server_count * sizeof(ServerCard));
  const std::size_t dismissals = layout.take(workers * sizeof(std::atomic<bool>));
  const std::size_t view = layout.take(ViewRegister::bytes_needed(workers));
  const std::size_t losses = layout.take(workers * LossQueue::bytes_needed());
  bytes_ = layout.bytes();
  // Most of the queues is never touched.
  void* mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) fail_errno("cannot share memory with the workers");
  auto* memory = static_cast<std::byte*>(mapped);
  header_ = new (memory + header) Header;
  cards_ = make_all<WorkerCard>(memory + cards, workers);
  servers_ = make_all<ServerCard>(memory + server_cards, server_count);
  dismissals_ = make_all<std::atomic<bool>>(memory + dismissals, workers);
  view_ = ViewRegister(memory + view);
  losses_ = memory + losses;
}

// The order matters: to show, then to look; and for the launcher to say that there is a stop, then
// to look. So at least one of the two sees the other.
bool ControlBlock::may_head_for(WorkerCard& card, std::int64_t steps) const {
  card.heading_for.store(steps);
  if (!header_->stop.load()) return true;
  std::int64_t last = header_->last_step.load();
  for (; last < 0; last = header_->last_step.load()) std::this_thread::yield();
  return steps <= last;
}

std::int64_t ControlBlock::furthest_step(std::span<const int> workers) const {
  std::int64_t furthest = 0;
  for (const int worker : workers) {
    furthest = std::max(furthest, card(worker).heading_for.load());
  }
  return furthest;
}

ControlBlock::~ControlBlock() {
  ::munmap(header_, bytes_);
}

}  // namespace cohort::launch
