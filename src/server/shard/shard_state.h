#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "server/memory/push_ledger.h"
#include "server/shard/gradient_sum.h"
#include "server/shard/shard.h"
#include "server/shard/shard_model.h"
#include "server/shard/worker_copies.h"

namespace cohort::server {

/// A request that waits for other workers: a push, or while gradients are held an `apply`.
struct WaitingRequest {
  Request request;
  std::uint64_t staleness = 0;
  std::optional<Clock::time_point> since = {};  ///< Once it has to wait at all.
  double waited_seconds = 0;                    ///< Until its round was made.
  bool finite = true;                           ///< What it pushes.
  bool has_copy = false;  ///< The update itself wrote the parameters to pull_into.
  ReplyHeader reply = {};
};

/// What a shard knows of a worker.
struct ShardWorker {
  bool active = true;  ///< Neither finished nor left: others may have to wait for it.
  std::optional<WaitingRequest> waiting = {};
  bool was_dropped = false;      ///< Since the last update.
  bool told_not_finite = false;  ///< That it pushes such numbers.
  ReplyHeader last_reply = {};   ///< To its newest push or apply, in case it gets lost.
};

/// A sync round that is kept until its workers say `apply`.
struct HeldRound {
  ReplyHeader reply;
  std::vector<int> workers = {};
};

/// Pushes gather in `waiting` of their workers. As soon as the rules are content with who has come
/// they make a *round*: one update, after which all of them are answered. *Kept* are pushes whose
/// workers are answered before the update: sync ones that are held for `apply`, and late ones of a
/// quorum.
///
/// Late workers must not wait. A worker goes on when all servers have answered it; if each of two
/// servers had one push and wanted a second, from a worker that waits for the other server, all
/// would wait for ever. As it is, one can always go on: of the pushes that workers wait for, take
/// the one sent first. It is not late where it waits, so no other has been in an update there, and
/// all have come. For the same reason a worker whose push was dropped is not expected again before
/// the next update.
///
/// An update, or a push that is kept, is committed to the memory before anybody is answered.
///
/// A push by consistency, from its arrival to its answer:
///
///   sync            waits; the round of all workers makes the update, then all are answered
///   sync with hold  waits; the round is kept, all get its norm; their `apply`s wait, and the last
///                   one makes the update
///   async           is a round of its own
///   quorum          waits until enough have come; a late one is kept and answered at once
///
/// Requests are checked in shard_check.cc and taken in shard.cc, rounds made in shard_round.cc.
struct Shard::State {
  State(const ShardRules& rules, ShardMemory memory, cluster::WorkBoard* board);

  bool sync() const { return rules_.consistency == ShardRules::Consistency::sync; }
  ShardWorker& worker(int number) { return workers_[static_cast<std::size_t>(number)]; }

  // Before a request is taken. These throw what it is refused with and change nothing but what
  // `dense` refers to, when it has to be decoded.
  void check(Request& request);
  void check_push(Request& request);
  void check_again(const Request& request) const;
  void check_same_hold(const RequestHeader& header) const;
  void check_apply(const RequestHeader& header) const;
  bool repeats_waiting(const RequestHeader& header);

  // Taking one.
  void take(Request&& request);
  void take_push(Request&& request);
  void take_late(const Request& request, std::uint64_t staleness);
  void take_not_finite(const Request& push, std::uint64_t staleness);
  void tell_not_finite(const RequestHeader& push);
  void drop(const Request& push, std::uint64_t staleness);
  void keep_for_next(const Request& push, std::uint64_t staleness);
  void commit_push(const Request& push);
  void take_apply(Request&& request);
  void take_again(Request&& request);
  void serve_rows(const Request& request) const;
  void leave(int number);
  bool can_go_without(int number);
  void refuse_all(const Error& error);

  // Rounds.
  void go_on();
  bool round_is_complete() const;
  bool apply_is_complete();
  void run_round();
  void update(std::span<WaitingRequest> round, ReplyHeader& reply);
  void hold(std::span<const WaitingRequest> round, ReplyHeader& reply);
  void finish_update(std::span<const WaitingRequest> round);
  void run_apply();
  void drop_kept();
  void commit();
  void lose_memory_where_told() const;
  void replicate(ReplicaMessage::Kind kind) const;
  const ShardRecord& record();
  void work_is_done(const Request& push);
  void keep(const Request& push, std::uint64_t staleness);
  ReplyHeader count_votes(std::span<const WaitingRequest> round) const;
  double weight_of(std::uint64_t staleness) const;
  std::span<const PushedGradients> gradients(std::span<const WaitingRequest> pushes);
  optimizer::UpdateScalars scalars(std::size_t pushes, double gradient_scale) const;

  // Answers.
  std::vector<WaitingRequest> take_waiting();
  void choose_targets(std::span<WaitingRequest> round);
  void answer_round(std::vector<WaitingRequest> round, const ReplyHeader& reply);
  void answer_at_once(const Request& request, ReplyHeader reply);

  const ShardRules rules_;
  ShardMemory memory_;
  const ShardShape shape_;
  cluster::WorkBoard* const board_;
  Replicate replicate_;  // Empty where there is no copy.
  ShardModel model_;
  PushLedger ledger_;
  WorkerCopies copies_;
  std::vector<ShardWorker> workers_;
  GradientSum kept_;  // Of pushes whose workers are answered before the update.
  std::vector<std::uint64_t> held_stalenesses_;  // Of sync pushes that count with `apply`.
  std::optional<HeldRound> held_;                // sync: from its round to its last `apply`.
  std::vector<Request> early_;                   // From before the first model.
  std::optional<Error> lost_;                    // Why nothing can be done any more.
  bool stop_ = false;     // Somebody was asked to; sync tells it within a round only.
  double newest_lr_ = 0;  // Of the newest push or apply.
  std::uint64_t version_ = 0;

  // Kept from round to round, because fresh memory is slow.
  ShardRecord record_;                       // The last one committed.
  std::vector<WaitingRequest> spare_round_;  // Empty.
  std::vector<std::span<float>> targets_;    // Where the update under way is copied to.
  std::vector<PushedGradients> gradients_;   // That enter it.
};

}  // namespace cohort::server
