// What a shard refuses, before anything of a request is taken: Shard::State's part of the checks. What
// can be seen from a request alone is in shard_rules.cc (check_request); here is what depends on what
// has come before: versions, numbers of pushes, who waits, what is held. What passes is done.

#include <algorithm>

#include "base/fail.h"
#include "base/failpoint.h"
#include "server/shard/shard_rules.h"
#include "server/shard/shard_state.h"

namespace cohort::server {

/// All that can be wrong is found here, before anything is changed: what take() is given is done.
void Shard::State::check(Request& request) {
  failpoint("server.before-checking");
  check_request(request, rules_, shape_);
  const RequestHeader& header = request.header;
  if (header.version > version_) {
    fail(ErrorCode::invalid, "worker {} says it has version {}; this server is at {}",
         header.worker, header.version, version_);
  }
  if (header.push) check_push(request);
  if (header.apply) check_apply(header);
}

/// Whether the worker waits for the answer to the same request.
bool Shard::State::repeats_waiting(const RequestHeader& header) {
  const auto& waiting = worker(header.worker).waiting;
  if (!waiting) return false;
  const RequestHeader& first = waiting->request.header;
  if (header.apply) return first.apply;
  return first.push && !header.is_again() && first.sequence == header.sequence;
}

/// One that has come before is let through, however the shard has changed since: it is answered and
/// not applied. Of what is new the message is decoded, which may show that it is corrupt.
void Shard::State::check_push(Request& request) {
  const RequestHeader& header = request.header;
  if (header.is_again()) check_again(request);
  const bool repeats = repeats_waiting(header);
  if (!repeats) {
    if (ledger_.has_come(header)) return;
    if (worker(header.worker).waiting) {
      fail(ErrorCode::invalid, "worker {} made push {} while its last request still waits",
           header.worker, header.sequence);
    }
    if (!worker(header.worker).active) {
      fail(ErrorCode::invalid, "worker {} made push {} after it had finished or left",
           header.worker, header.sequence);
    }
    if (held_) {
      fail(ErrorCode::invalid, "worker {} made push {} before what is held was applied",
           header.worker, header.sequence);
    }
  }
  check_same_hold(header);
  request.dense = copies_.pushed(request);
}

/// A push of an earlier group can name any worker and any work; both must at least be possible.
void Shard::State::check_again(const Request& request) const {
  ledger_.check_again(request.header);
  for (const cluster::Claim& piece : request.pieces) {
    if (!board_ || board_->has(piece)) continue;
    fail(ErrorCode::invalid, "worker {} pushes part {} of step {}; there is no such work",
         request.header.worker, piece.part, piece.step);
  }
}

/// A round is held as a whole, so its pushes must agree.
void Shard::State::check_same_hold(const RequestHeader& header) const {
  for (const ShardWorker& other : workers_) {
    if (!other.waiting || other.waiting->request.header.hold == header.hold) continue;
    fail(ErrorCode::invalid,
         "worker {} wants its push held and worker {} does not; it must be all or none",
         header.hold ? header.worker : other.waiting->request.header.worker,
         header.hold ? other.waiting->request.header.worker : header.worker);
  }
}

void Shard::State::check_apply(const RequestHeader& header) const {
  if (!held_ && header.version < version_) return;  // It was done, and the answer lost.
  if (!held_ || std::ranges::find(held_->workers, header.worker) == held_->workers.end()) {
    fail(ErrorCode::invalid, "worker {} asked to apply; nothing of it is held", header.worker);
  }
}

}  // namespace cohort::server
