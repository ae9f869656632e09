#include "server/shard.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "server/request_check.h"
#include "server/shard_rules.h"
#include "server/shard_state.h"

namespace cohort {

Shard::State::State(const ShardRules& rules, const ShardShape& shape)
    : rules_(rules),
      shape_(shape),
      model_(shape, rules.optimizer),
      ledger_(rules.workers),
      copies_(rules, shape),
      workers_(static_cast<std::size_t>(rules.workers)),
      kept_(shape) {}

void Shard::State::check(Request& request) {
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
  return header.apply ? first.apply : first.push && first.sequence == header.sequence;
}

void Shard::State::check_push(Request& request) {
  const RequestHeader& header = request.header;
  const bool repeats = repeats_waiting(header);
  if (!repeats) {
    if (ledger_.has_come(header.worker, header.sequence)) return;
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

void Shard::State::take(Request request, Clock::time_point now) {
  const RequestHeader header = request.header;
  serve_rows(request);
  if (header.stop && !sync()) stop_ = true;
  if (header.finished) worker(header.worker).active = false;
  if (header.push) {
    take_push(std::move(request), now);
  } else if (header.apply) {
    take_apply(std::move(request), now);
  } else {
    answer_at_once(request, {});
  }
  go_on(now);
}

void Shard::State::take_push(Request request, Clock::time_point now) {
  const RequestHeader header = request.header;
  if (ledger_.has_come(header.worker, header.sequence)) {
    ledger_.record_duplicate();
    return take_again(std::move(request));
  }
  ledger_.accept(header.worker, header.sequence);
  const std::uint64_t staleness = version_ - header.version;
  const bool waits = rules_.late_waits && !rules_.drop_late;
  if (rules_.consistency == ShardRules::Consistency::quorum && staleness > 0 && !waits) {
    return take_late(request, staleness);
  }
  newest_lr_ = header.lr;
  worker(header.worker).waiting.emplace(WaitingRequest{std::move(request), now, staleness});
}

void Shard::State::take_late(const Request& request, std::uint64_t staleness) {
  ShardWorker& from = worker(request.header.worker);
  from.last_reply = {
      .staleness = staleness, .applied = !rules_.drop_late, .dropped = rules_.drop_late};
  if (rules_.drop_late) {
    ledger_.record_dropped(staleness);
    from.was_dropped = true;
  } else {
    newest_lr_ = request.header.lr;
    keep(request, staleness);
  }
  answer_at_once(request, from.last_reply);
}

void Shard::State::take_apply(Request request, Clock::time_point now) {
  ShardWorker& from = worker(request.header.worker);
  if (!held_ || from.waiting) return take_again(std::move(request));
  newest_lr_ = request.header.lr;
  from.waiting.emplace(WaitingRequest{std::move(request), now});
}

/// A push or apply that has come before: the answer to the first was lost, or will be.
void Shard::State::take_again(Request request) {
  const RequestHeader header = request.header;
  ShardWorker& from = worker(header.worker);
  if (repeats_waiting(header)) {
    const Request first = std::exchange(from.waiting->request, std::move(request));
    first.refuse(Error(ErrorCode::cancelled, "the same request came again and is answered there"));
    return;
  }
  const bool newest = header.apply || header.sequence == ledger_.last(header.worker);
  ReplyHeader reply = newest ? from.last_reply : ReplyHeader{};
  reply.applied = false;
  reply.duplicate = true;
  reply.held_seconds = 0;
  answer_at_once(request, reply);
}

void Shard::State::serve_rows(const Request& request) const {
  for (const RowsWanted& wanted : request.rows_wanted) {
    model_.table(wanted.table).copy_rows(wanted.rows, wanted.values);
  }
}

void Shard::State::leave(int number) {
  std::vector<Request> unanswered;
  for (Request& request : early_) {
    if (request.header.worker == number) unanswered.push_back(std::move(request));
  }
  std::erase_if(early_, [&](const Request& request) { return request.header.worker == number; });
  ShardWorker& left = worker(number);
  left.active = false;
  if (left.waiting) {
    if (left.waiting->request.header.push) ledger_.record_dropped(left.waiting->staleness);
    unanswered.push_back(std::move(left.waiting->request));
    left.waiting.reset();
  }
  if (held_) leave_held(number);
  for (const Request& request : unanswered) {
    request.refuse(Error(ErrorCode::peer_lost, fmt::format("worker {} has left", number)));
  }
  go_on(Clock::now());
}

Shard::Shard(const ShardRules& rules, const ShardShape& shape) {
  check_rules(rules);
  check_shape(shape);
  state_ = std::make_unique<State>(rules, shape);
}

Shard::~Shard() = default;

void Shard::initialise(std::span<const float> dense,
                       const std::vector<std::vector<float>>& tables) {
  if (state_->initialised_) fail(ErrorCode::invalid, "this server has its first model already");
  state_->model_.initialise(dense, tables);
  state_->initialised_ = true;
  for (Request& request : std::exchange(state_->early_, {})) submit(std::move(request));
}

void Shard::submit(Request request) {
  if (!state_->initialised_) {
    state_->early_.push_back(std::move(request));
    return;
  }
  try {
    state_->check(request);
  } catch (const Error& error) {
    request.refuse(error);
    return;
  }
  state_->take(std::move(request), Clock::now());
}

void Shard::leave(int worker) {
  if (worker < 0 || worker >= state_->rules_.workers) {
    fail(ErrorCode::invalid, "worker {} left; the workers are 0 to {}", worker,
         state_->rules_.workers - 1);
  }
  state_->leave(worker);
}

std::uint64_t Shard::version() const {
  return state_->version_;
}

std::span<const float> Shard::dense() const {
  return state_->model_.dense();
}

const PushCounts& Shard::counts() const {
  return state_->ledger_.counts();
}

}  // namespace cohort
