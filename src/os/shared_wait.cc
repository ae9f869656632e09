#include "os/shared_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace cohort::os {

namespace {

// Returns at once where the word is no longer `expected`, otherwise when woken, interrupted or out
// of time: the caller looks again in any case. Without FUTEX_PRIVATE_FLAG, since the word may be
// mapped by several processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration at_most) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most).count();
  timespec time{};
  time.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  time.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

}  // namespace

WaitPolicy WaitPolicy::for_ranks(int ranks, int cores) {
  WaitPolicy policy;
  policy.yield = ranks > cores;
  return policy;
}

SharedEvent::Sleeper::Sleeper(SharedEvent& event) : event_(event) {
  event_.sleepers_.fetch_add(1, std::memory_order_acq_rel);
  seen_ = event_.wakes_.load(std::memory_order_acquire);
}

SharedEvent::Sleeper::~Sleeper() {
  event_.sleepers_.fetch_sub(1, std::memory_order_acq_rel);
}

void SharedEvent::Sleeper::sleep(Duration at_most) {
  if (at_most > Duration::zero()) futex_wait(event_.wakes_, seen_, at_most);
}

void SharedEvent::wake_all() noexcept {
  wakes_.fetch_add(1, std::memory_order_acq_rel);
  ::syscall(SYS_futex, &wakes_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedWait::yield_core() {
  ::sched_yield();
}

}  // namespace cohort::os
