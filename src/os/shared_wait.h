#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

#include "base/deadline.h"
#include "os/this_process.h"

namespace cohort::os {

/// Waiting until another process or thread has changed memory that both see.
///
///   writer                      waiter, by SharedWait::until(event, ready, …)
///   store the change            1. look: call ready() again and again for `busy`; most waits of a
///   event.notify()                 step end here, without a system call
///                               2. sleep: announce a sleeper, look once more, sleep in the kernel
///                                  (futex) until a notify() or for a `slice`; look; repeat
///
/// No change is missed: a sleeper is announced before its last look, and notify() looks for
/// sleepers after the change was stored; whichever of the two comes second sees the other. Between
/// slices the waiter asks on_slice(), which is where it finds out that the writer has died
/// (os/peer_watch.h) or that the run ends. Every wait ends at its deadline at the latest.

/// How long to wait in which way. Waking a sleeper takes some 30 µs, a spinning one sees a change
/// after 0.1 µs; but who spins keeps a core from the rank it waits for when cores are short.
struct WaitPolicy {
  Duration busy = std::chrono::microseconds(50);   ///< Look again and again for this long,
  bool yield = false;                              ///< giving the core away between two looks,
  Duration slice = std::chrono::milliseconds(10);  ///< then sleep, and look around this often.

  /// Spin where each of the `ranks` of this host has a core of its own, yield otherwise.
  static WaitPolicy for_ranks(int ranks, int cores = usable_cores());
};

/// Something that others wait for. It lives in memory that several processes or threads share;
/// zeroed memory is a valid event. It says only "look again": what has happened is in the memory
/// beside it. Put it on the cache line that the notifying side writes anyway.
///
/// A process that dies while it waits does no harm: its sleeper stays announced, so that later
/// calls of notify() make a system call that they could have spared.
class SharedEvent {
 public:
  /// Call after the change was stored. Costs one atomic instruction while nobody sleeps.
  void notify() noexcept {
    // This and the sleeper's increment are ordered: either we see the sleeper and wake it, or it
    // sees what was stored before this call.
    if (sleepers_.fetch_add(0, std::memory_order_acq_rel) != 0) wake_all();
  }

 private:
  friend class SharedWait;

  /// Announces a sleeper for as long as it lives.
  class Sleeper {
   public:
    explicit Sleeper(SharedEvent& event);
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Sleeps at most this long; returns at once when there was a wake since construction.
    void sleep(Duration at_most);

   private:
    SharedEvent& event_;
    std::uint32_t seen_;
  };

  void wake_all() noexcept;

  std::atomic<std::uint32_t> wakes_{0};     // The futex: counts wake_all().
  std::atomic<std::uint32_t> sleepers_{0};  // Announced now, of all processes.
};

/// Waits for shared events by one policy. Has no state of its own; any thread may use it.
class SharedWait {
 public:
  explicit SharedWait(WaitPolicy policy) : policy_(policy) {}

  /// Returns true as soon as ready() is true, false when the deadline has passed before. ready() is
  /// called often and may do work; whoever can make it true must call event.notify() afterwards.
  /// on_slice() is called about every `slice` of sleeping, to look for reasons to give up; what it
  /// or ready() throws passes through.
  template <std::predicate Ready, std::invocable OnSlice>
  bool until(SharedEvent& event, Ready&& ready, Deadline deadline, OnSlice&& on_slice) const {
    return look_often(ready) || sleep_until(event, ready, deadline, on_slice);
  }

  /// The first half of until(): true if ready() is true within the busy time.
  template <std::predicate Ready>
  bool look_often(Ready&& ready) const {
    constexpr int kLooksPerClock = 32;
    if (ready()) return true;
    const auto end = Clock::now() + policy_.busy;
    do {
      for (int look = 0; look < (policy_.yield ? 1 : kLooksPerClock); ++look) {
        policy_.yield ? yield_core() : relax();
        if (ready()) return true;
      }
    } while (Clock::now() < end);
    return false;
  }

  /// The second half of until().
  template <std::predicate Ready, std::invocable OnSlice>
  bool sleep_until(SharedEvent& event, Ready&& ready, Deadline deadline, OnSlice&& on_slice) const {
    auto next_slice = Clock::now() + policy_.slice;
    while (true) {
      {
        SharedEvent::Sleeper sleeper(event);
        if (ready()) return true;
        sleeper.sleep(std::min(next_slice, deadline.at()) - Clock::now());
      }
      if (ready()) return true;
      const auto now = Clock::now();
      if (now >= next_slice) {
        on_slice();
        next_slice = now + policy_.slice;
      }
      if (now >= deadline.at()) return false;
    }
  }

 private:
  /// Lets the other hardware thread of this core, or whoever wants the core, go first.
  static void relax();
  static void yield_core();

  WaitPolicy policy_;
};

inline void SharedWait::relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace cohort::os
