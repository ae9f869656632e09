#include "launch/control/view_register.h"

#include <thread>

namespace cohort::launch {
namespace {

/// Nobody is in a hurry: who waits here has nothing else to do, and its group begins with more than
/// a wake-up.
constexpr os::WaitPolicy kSleep{.busy = Duration::zero(), .yield = true};

}  // namespace

std::size_t ViewRegister::bytes_needed(std::size_t max_workers) {
  return sizeof(Head) + max_workers * sizeof(std::atomic<std::int32_t>);
}

// Every value is stored with release order after the odd count: a reader that sees one of them sees
// that count too, or a later one, and does not take them for whole.
void ViewRegister::write(const cluster::View& view) const {
  Head& to = head();
  const std::uint64_t count = to.count.load(std::memory_order_relaxed);
  to.count.store(count + 1, std::memory_order_relaxed);
  to.generation.store(view.generation, std::memory_order_release);
  to.closing.store(view.closing ? 1 : 0, std::memory_order_release);
  to.world.store(view.world(), std::memory_order_release);
  for (std::size_t rank = 0; rank < view.workers.size(); ++rank) {
    workers()[rank].store(view.workers[rank], std::memory_order_release);
  }
  to.count.store(count + 2, std::memory_order_release);
  to.written.notify();
}

std::optional<cluster::View> ViewRegister::try_read() const {
  const Head& from = head();
  const std::uint64_t count = from.count.load(std::memory_order_acquire);
  if (count % 2 != 0) return std::nullopt;
  cluster::View view{.generation = from.generation.load(std::memory_order_acquire),
                     .closing = from.closing.load(std::memory_order_acquire) != 0};
  view.workers.resize(static_cast<std::size_t>(from.world.load(std::memory_order_acquire)));
  for (std::size_t rank = 0; rank < view.workers.size(); ++rank) {
    view.workers[rank] = workers()[rank].load(std::memory_order_acquire);
  }
  if (from.count.load(std::memory_order_relaxed) != count) return std::nullopt;
  return view;
}

cluster::View ViewRegister::read() const {
  for (;;) {
    if (auto view = try_read()) return *std::move(view);
    std::this_thread::yield();
  }
}

std::optional<cluster::View> ViewRegister::wait_for(std::int64_t generation,
                                                    Deadline deadline) const {
  const auto is_there = [&] {
    return head().generation.load(std::memory_order_acquire) >= generation;
  };
  if (!os::SharedWait(kSleep).until(head().written, is_there, deadline, [] {})) return std::nullopt;
  return read();
}

}  // namespace cohort::launch
