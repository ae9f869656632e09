#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/deadline.h"
#include "base/traffic.h"
#include "cluster/work_board.h"

namespace cohort::rpc {
class RpcCall;
}  // namespace cohort::rpc

namespace cohort::gossip {

struct RemoteHeader;

/// Claims: where the workers of a run without a centre get their work.
///
/// A *piece* of work is one part of one step's batch; its *number* is step * parts + part, its
/// *index* the place among what is handed out here (ClaimRange). Each piece is handed out once, in
/// order, to whoever is free, by one ClaimCounter: in memory that all workers share, or in rank 0,
/// which the others ask.
///
/// A piece is *done* when its worker says so. What a worker has taken and never finished, because
/// it died, is known (left()) and handed out again by the next group; in this one it is not.

/// One worker's claims. One thread at a time.
class Claims {
 public:
  virtual ~Claims() = default;

  /// The next piece of work; nothing when all is handed out or somebody has called stop(). Throws
  /// Error(peer_lost) or Error(timeout) where whoever counts is not there any more.
  virtual std::optional<cluster::Claim> next() = 0;

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
  virtual cluster::WorkLeft left() const = 0;

  /// Of messages about claims.
  virtual Traffic traffic() const { return {}; }
};

/// What is handed out: first the pieces to do again, then all from `work.next` to the end of step
/// end_step - 1.
struct ClaimRange {
  cluster::WorkLeft work = {};
  std::int64_t end_step = 0;

  std::int64_t size() const;
  /// How many pieces of the whole job are done or handed out before `claim`, one of these.
  std::int64_t pieces_before(const cluster::Claim& claim) const;
  /// Of the pieces in their order.
  cluster::Claim at(std::int64_t index) const;
};

/// Steps of which nothing is left.
std::int64_t whole_steps(const cluster::WorkLeft& work);

/// What is left by what several workers know of it, each at its time. A piece is done where
/// somebody knew that it was handed out and done. There is at least one view, and all have the same
/// parts.
cluster::WorkLeft merged_work(std::span<const cluster::WorkLeft> views);

/// Counts the claims and remembers who works on which, in memory that all who take from it can
/// touch; zeroed memory is a new one. Needs no lock: a process that dies here, at whatever
/// instruction, harms nobody, and what it was working on is known.
///
/// A worker takes a piece by one compare-and-exchange of `taken`, which holds the number of pieces
/// taken and who took the last one, and then notes the piece as its own in its line. Should it die
/// between the two, `taken` still says what it had: whoever takes next, or asks what is left, notes
/// it first. Lines only grow, so a late note changes nothing. Any thread of any process may call
/// any of this at any time.
class ClaimCounter {
 public:
  static std::size_t bytes_needed(int world);

  /// `memory` is 64-byte aligned and has bytes_needed(world). All who share it have the same range.
  ClaimCounter(std::span<std::byte> memory, int world, const ClaimRange& range);

  std::optional<cluster::Claim> next(int worker);
  /// Ignored where it is not what the worker has taken last.
  void done(int worker, const cluster::Claim& claim);
  void stop() { head().stopped.store(1, std::memory_order_relaxed); }
  bool stopped() const { return head().stopped.load(std::memory_order_relaxed) != 0; }

  /// See Claims::left. Others may take and finish meanwhile.
  cluster::WorkLeft left() const;

 private:
  /// `taken` is how many pieces were taken << 16 | 1 + who took the last one; 0: none was.
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

  std::span<std::byte> memory_;  // A Head, then a Piece per worker.
  int world_;
  ClaimRange range_;
};

/// The claims of one worker that can touch the counter, which must outlive them.
std::unique_ptr<Claims> make_counted_claims(ClaimCounter& counter, int worker);

struct RemoteClaimsOptions {
  std::string address = {};  ///< Of the counter's RpcServer.
  cluster::Pass pass;
  int rank = 0;
  cluster::WorkLeft work = {};  ///< What is handed out.
  Duration timeout = {};
};

/// The claims of a worker that shares no memory with rank 0, which counts: next(), finish() and
/// stop() are calls that wait for its answer.
std::unique_ptr<Claims> make_remote_claims(const RemoteClaimsOptions& options);

/// On rank 0: answers such a call, whose header was read and whose sender is a rank of the run.
void answer_claim(rpc::RpcCall& call, ClaimCounter& counter, const RemoteHeader& header);

}  // namespace cohort::gossip
