#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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

  /// This worker has done the piece that next() gave it last.
  virtual void done() = 0;

  /// This worker asks for nothing more, and wants to be sure that all know what it has done.
  virtual void finish() {}

  /// From now on nobody gets a claim.
  virtual void stop() = 0;

  /// Whether this worker knows that somebody has called stop(): at the latest after its next
  /// next().
  virtual bool stopped() = 0;

  /// What nobody has done yet: what is not handed out, and what workers have and are not done with,
  /// whether they live or not. Where another worker counts it is what this one was told last, and
  /// others may have done some of it since.
  virtual WorkLeft left() const = 0;

  /// Bytes of messages about claims.
  virtual std::uint64_t bytes_sent() const { return 0; }
  virtual std::uint64_t bytes_received() const { return 0; }
};

/// What is handed out: first the pieces to do again, then all from `work.next` to the end of step
/// end_step - 1.
struct ClaimRange {
  WorkLeft work = {};
  std::int64_t end_step = 0;

  std::int64_t size() const;
  /// How many pieces of the whole job are done or handed out before `claim`, one of these.
  std::int64_t pieces_before(const Claim& claim) const;
  /// Of the pieces in their order.
  Claim at(std::int64_t index) const;
};

/// Steps of which nothing is left.
std::int64_t whole_steps(const WorkLeft& work);

/// What is left by what several workers know of it, each at its time. A piece is done where
/// somebody knew that it was handed out and done. There is at least one view, and all have the same
/// parts.
WorkLeft merged_work(std::span<const WorkLeft> views);

/// Counts the claims and remembers who works on which, in memory that all who take from it can
/// touch; zeroed memory is a new one. Needs no lock: a process that dies here, at whatever
/// instruction, harms nobody, and what it was working on is known.
class ClaimCounter {
 public:
  static std::size_t bytes_needed(int world);

  /// `memory` is 64-byte aligned and has bytes_needed(world). All who share it have the same range.
  ClaimCounter(std::span<std::byte> memory, int world, const ClaimRange& range);

  std::optional<Claim> next(int worker);
  /// Ignored where it is not what the worker has taken last.
  void done(int worker, const Claim& claim);
  void stop() { head().stopped.store(1, std::memory_order_relaxed); }
  bool stopped() const { return head().stopped.load(std::memory_order_relaxed) != 0; }

  /// See Claims::left. Others may take and finish meanwhile.
  WorkLeft left() const;

 private:
  /// `taken` is how many pieces were taken << 16 | 1 + who took the last one.
  struct alignas(64) Head {
    std::atomic<std::uint64_t> taken;
    std::atomic<std::uint32_t> stopped;
  };
  /// What a worker took last, as 2 * (1 + index), one more when it is done. Only grows.
  struct alignas(64) Piece {
    std::atomic<std::uint64_t> state;
  };

  Head& head() const { return *reinterpret_cast<Head*>(memory_.data()); }
  Piece& piece(int worker) const {
    return reinterpret_cast<Piece*>(memory_.data() + sizeof(Head))[worker];
  }
  void note_last(std::uint64_t taken) const;

  std::span<std::byte> memory_;
  int world_;
  ClaimRange range_;
};

/// The claims of one worker that can touch the counter.
class CountedClaims : public Claims {
 public:
  CountedClaims(ClaimCounter& counter, int worker) : counter_(counter), worker_(worker) {}

  std::optional<Claim> next() override { return last_ = counter_.next(worker_); }
  void done() override {
    if (last_) counter_.done(worker_, *last_);
  }
  void stop() override { counter_.stop(); }
  bool stopped() override { return counter_.stopped(); }
  WorkLeft left() const override { return counter_.left(); }

 private:
  ClaimCounter& counter_;
  int worker_;
  std::optional<Claim> last_;
};

}  // namespace cohort
