// Rounds of a shard: when one is complete, the update it makes, the commit, and the answers. See
// Shard::State for the words. The order within an update is what makes it safe:
//
//   begin_update  →  floats change, each block saved before and, where pulls are not compressed,
//                    copied to those who pull
//                 →  ledger and work  →  commit  →  the copy on the next server
//                 →  other pulls are served  →  answers
//
// A server killed before the commit has not made the update, and nobody was told of it: floats that
// a worker has got without an answer count for nothing, it pulls again in the next group. After the
// commit it has, and whoever got no answer finds its push in the ledger when it makes it again.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/failpoint.h"
#include "server/memory/lasting_memory.h"
#include "server/shard/shard_rules.h"
#include "server/shard/shard_state.h"

namespace cohort::server {

/// Makes the update that has become possible, if one has.
void Shard::State::go_on() {
  if (held_ && apply_is_complete()) {
    run_apply();
  } else if (!held_ && round_is_complete()) {
    run_round();
  }
}

/// `come` are pushes that are here, `expected` are those and the ones that can still come. A worker
/// whose push was dropped is not expected before the next update.
bool Shard::State::round_is_complete() const {
  std::size_t come = kept_.pushes();
  std::size_t expected = 0;
  for (const ShardWorker& one : workers_) {
    come += one.waiting ? 1 : 0;
    expected += one.waiting || (one.active && !one.was_dropped) ? 1 : 0;
  }
  if (come == 0) return false;
  switch (rules_.consistency) {
    case ShardRules::Consistency::sync:
      return come == expected;
    case ShardRules::Consistency::async:
      return true;
    case ShardRules::Consistency::quorum:
      return come >= std::min(static_cast<std::size_t>(rules_.quorum), expected);
  }
  return false;
}

bool Shard::State::apply_is_complete() {
  return std::ranges::all_of(held_->workers,
                             [&](int number) { return worker(number).waiting.has_value(); });
}

/// Of everything that waits: an update; or, in sync, a sum that is held, or nothing at all where a
/// loss or a push is not finite.
void Shard::State::run_round() {
  std::vector<WaitingRequest> round = take_waiting();
  ReplyHeader reply = count_votes(round);
  if (reply.diverged_rank >= 0) {
    for (const WaitingRequest& push : round) ledger_.record_dropped(push.staleness);
  } else if (sync() && round.front().request.header.hold) {
    hold(round, reply);
  } else {
    update(round, reply);
  }
  answer_round(std::move(round), reply);
}

void Shard::State::update(std::span<WaitingRequest> round, ReplyHeader& reply) {
  choose_targets(round);
  const bool want_norm =
      std::ranges::any_of(round, [](const auto& push) { return push.request.header.want_norm; });
  memory_.begin_update();
  reply.square_sum =
      model_.update(gradients(round), {.scalars = scalars(kept_.pushes() + round.size(), 1),
                                       .want_norm = want_norm,
                                       .copies = targets_});
  reply.applied = true;
  for (const WaitingRequest& push : round) ledger_.record_applied(push.staleness);
  finish_update(round);
}

/// From changed floats to a committed update. `round` are the requests it is made for; what was
/// kept and counts only now, since it was held, is counted with them.
void Shard::State::finish_update(std::span<const WaitingRequest> round) {
  ++version_;
  for (const WaitingRequest& push : round) {
    work_is_done(push.request);
    ledger_.settle_applied(push.request.header);
  }
  for (const std::uint64_t staleness : held_stalenesses_) ledger_.record_applied(staleness);
  held_stalenesses_.clear();
  kept_.clear();
  for (ShardWorker& one : workers_) one.was_dropped = false;
  commit();
  replicate(ReplicaMessage::Kind::update);
}

void Shard::State::replicate(ReplicaMessage::Kind kind) const {
  if (replicate_) replicate_(memory_, kind);
}

/// What a commit writes. It is kept from commit to commit, since copying all counts would cost more
/// than the rest; become() copies those in use.
const ShardRecord& Shard::State::record() {
  record_.version = version_;
  record_.kept_pushes = kept_.pushes();
  record_.kept_area = kept_.area();
  record_.lr = newest_lr_;
  record_.ledger_generation = ledger_.generation();
  record_.counts.become(ledger_.counts());
  return record_;
}

/// Makes what this shard is now what it will be found as.
void Shard::State::commit() {
  failpoint("server.before-commit");
  std::optional<cluster::WorkLeft> work;
  if (board_ && memory_.lasts()) work = board_->left();
  memory_.commit(record(), work ? &*work : nullptr, ledger_.entries());
  failpoint("server.before-answer");
  lose_memory_where_told();
}

/// As if this server's host were gone, and its memory with it.
void Shard::State::lose_memory_where_told() const {
  try {
    failpoint("server.lose-memory");
  } catch (const Error&) {
    lose_memory(memory_.lasting());
    ::kill(::getpid(), SIGKILL);
  }
}

/// In the commit that has the push the work is no longer open, so no piece is lost or done twice.
void Shard::State::work_is_done(const Request& push) {
  if (!board_) return;
  if (push.header.is_again()) {
    board_->done_before(push.pieces);
  } else {
    board_->done(push.header.worker);
  }
}

/// The sum is made and its norm told; it is not committed. If the server dies now the step never
/// was.
void Shard::State::hold(std::span<const WaitingRequest> round, ReplyHeader& reply) {
  HeldRound held{.reply = {}};
  for (const WaitingRequest& push : round) {
    keep(push.request, push.staleness);
    held_stalenesses_.push_back(push.staleness);
    held.workers.push_back(push.request.header.worker);
  }
  const double factor = factor_of(rules_, kept_.pushes());
  reply.square_sum = kept_.square_sum() * factor * factor;
  held.reply = reply;
  held_.emplace(std::move(held));
}

void Shard::State::keep(const Request& push, std::uint64_t staleness) {
  kept_.add({.dense = push.dense, .rows = push.rows, .weight = weight_of(staleness)});
}

void Shard::State::run_apply() {
  std::vector<WaitingRequest> round = take_waiting();
  choose_targets(round);
  memory_.begin_update();
  const double scale = round.front().request.header.scale;
  model_.update(gradients({}), {.scalars = scalars(kept_.pushes(), scale), .copies = targets_});
  ReplyHeader reply = held_->reply;
  reply.applied = true;
  held_.reset();
  finish_update(round);
  answer_round(std::move(round), reply);
}

void Shard::State::drop_kept() {
  for (const std::uint64_t staleness : held_stalenesses_) ledger_.record_dropped(staleness);
  held_stalenesses_.clear();
  kept_.clear();
}

/// sync: what all are told alike.
ReplyHeader Shard::State::count_votes(std::span<const WaitingRequest> round) const {
  ReplyHeader reply{.stop = stop_};
  if (!sync()) return reply;
  for (const WaitingRequest& push : round) {
    const RequestHeader& header = push.request.header;
    reply.loss += header.loss;
    reply.stop |= header.stop;
    reply.save |= header.save;
    const bool finite = push.finite && std::isfinite(header.loss);
    if (!finite && reply.diverged_rank < 0) reply.diverged_rank = header.worker;
  }
  return reply;
}

double Shard::State::weight_of(std::uint64_t staleness) const {
  return sync() ? 1 : rules_.weight_of(staleness);
}

/// What is kept, and these, as they enter an update.
std::span<const PushedGradients> Shard::State::gradients(std::span<const WaitingRequest> pushes) {
  // Adding a delta is going down a gradient of the opposite sign.
  const double sign = rules_.deltas ? -1 : 1;
  const double factor = sign * factor_of(rules_, kept_.pushes() + pushes.size());
  gradients_.clear();
  if (!kept_.empty()) gradients_.push_back(kept_.gradients());
  for (const WaitingRequest& push : pushes) {
    gradients_.push_back({.dense = push.request.dense,
                          .rows = push.request.rows,
                          .weight = weight_of(push.staleness)});
  }
  for (PushedGradients& one : gradients_) one.weight *= factor;
  return gradients_;
}

optimizer::UpdateScalars Shard::State::scalars(std::size_t pushes, double gradient_scale) const {
  return {.lr = rules_.deltas ? rules_.optimizer.lr : newest_lr_,
          .step = static_cast<std::int64_t>(version_) + 1,
          .gradient_scale = gradient_scale,
          .share = share_of(rules_, pushes)};
}

/// All that wait, in the order of the workers.
std::vector<WaitingRequest> Shard::State::take_waiting() {
  std::vector<WaitingRequest> all = std::exchange(spare_round_, {});
  for (ShardWorker& one : workers_) {
    if (!one.waiting) continue;
    if (one.waiting->since) one.waiting->waited_seconds = seconds_since(*one.waiting->since);
    all.push_back(std::move(*one.waiting));
    one.waiting.reset();
  }
  return all;
}

/// Plain pulls, which an update can serve while its floats are in the cache.
void Shard::State::choose_targets(std::span<WaitingRequest> round) {
  targets_.clear();
  for (WaitingRequest& one : round) {
    one.has_copy = one.request.header.pull && copies_.plain();
    if (one.has_copy) targets_.push_back(one.request.pull_into);
  }
}

/// All is done before the first is answered: whoever gets an answer may submit its next request.
void Shard::State::answer_round(std::vector<WaitingRequest> round, const ReplyHeader& reply) {
  for (WaitingRequest& one : round) {
    if (one.has_copy) {
      copies_.pull_copied(one.request, model_.dense());
    } else if (one.request.header.pull) {
      copies_.pull(one.request, model_.dense());
    }
    one.reply = reply;
    one.reply.version = version_;
    one.reply.staleness = one.staleness;
    one.reply.waited_seconds = one.waited_seconds;
    worker(one.request.header.worker).last_reply = one.reply;
  }
  for (const WaitingRequest& one : round) one.request.answer(one.reply);
  round.clear();
  spare_round_ = std::move(round);
}

void Shard::State::answer_at_once(const Request& request, ReplyHeader reply) {
  if (request.header.pull) copies_.pull(request, model_.dense());
  reply.version = version_;
  reply.stop |= stop_;
  request.answer(reply);
}

}  // namespace cohort::server
