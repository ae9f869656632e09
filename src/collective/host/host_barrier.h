#pragma once

#include <cohort/error.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "os/peer_watch.h"
#include "os/shared_wait.h"

namespace cohort {

/// A barrier between the ranks of one host, in memory they share. Every rank has a cache line in
/// which it counts its arrivals; to pass, a rank waits until all the others' counts have reached
/// its own. So whoever waits in vain can name the ranks that are missing.
///
/// Who waits looks at all that have not arrived, not only at the one it waits for: one of them that
/// died or left will never come, and those that live may not either, because of it. A rank that
/// died after it had arrived is in nobody's way here: the next barrier misses it.
class HostBarrier {
 public:
  static std::size_t bytes_needed(int world);

  /// `region` is zeroed memory shared by all ranks, 64-byte aligned. `watch` may be empty where
  /// ranks are threads of one process.
  HostBarrier(int rank, int world, std::span<std::byte> region, PeerWatch watch, WaitPolicy policy);

  /// Returns when every rank has called it as often as this one. Throws Error(timeout) or
  /// Error(peer_lost) naming the missing ranks and `doing`; from then on every call throws.
  void arrive_and_wait(Deadline deadline, const char* doing);

  /// Tells the others that this rank will not come again: their waits end with Error(peer_lost).
  void leave() noexcept;

 private:
  struct alignas(64) Line {
    std::atomic<std::uint32_t> arrivals;
    std::atomic<std::uint32_t> left;
    SharedEvent event;
  };

  void wait_for(int peer, Deadline deadline, const char* doing);
  void look_for_the_lost(const char* doing);
  bool has_left(int peer) const;
  [[noreturn]] void give_up(ErrorCode code, int peer, const char* doing);
  bool has_arrived(int peer) const;

  int rank_;
  std::span<Line> lines_;
  PeerWatch watch_;
  SharedWait wait_;
  std::uint32_t arrivals_ = 0;
  std::string failure_;
  int failed_rank_ = -1;
};

}  // namespace cohort
