#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "cluster/work_board.h"

namespace cohort {

/// Where the workers of a run without a centre get their work: every part of every step's batch is
/// handed out once, in order, to whoever is free.
class Claims {
 public:
  virtual ~Claims() = default;

  /// The next piece of work; nothing when all is handed out or somebody has called stop(). Throws
  /// Error(peer_lost) or Error(timeout) where whoever counts is not there any more.
  virtual std::optional<Claim> next() = 0;

  /// From now on nobody gets a claim.
  virtual void stop() = 0;

  /// Whether this worker knows that somebody has called stop(): at the latest after its next
  /// next().
  virtual bool stopped() = 0;
};

/// What is handed out: `parts` parts of each of the steps 0 … end_step-1.
struct ClaimRange {
  int parts = 1;
  std::int64_t end_step = 0;
};

/// Counts the claims, in memory that all who take from it can touch; zeroed memory is a new one.
/// Unlike a WorkBoard it needs no lock and does not mind a process that dies.
class ClaimCounter {
 public:
  std::optional<Claim> next(const ClaimRange& range) {
    if (stopped()) return std::nullopt;
    const std::int64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    if (number / range.parts >= range.end_step) return std::nullopt;
    return Claim{.step = number / range.parts, .part = static_cast<int>(number % range.parts)};
  }

  void stop() { stopped_.store(1, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<std::int64_t> next_;
  std::atomic<std::uint32_t> stopped_;
};

}  // namespace cohort
