#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/log.h"
#include "compression/float_bits.h"
#include "server/shard/shard_rules.h"
#include "server/shard/shard_state.h"

namespace cohort::server {

namespace {

std::array<KeptArea, 2> kept_areas(const ShardMemory& memory, const ShardRules& rules) {
  // What sync holds counts for nothing before its update, so it may grow where it is.
  const bool sync = rules.consistency == ShardRules::Consistency::sync;
  return {memory.kept(0), memory.kept(sync ? 0 : 1)};
}

ShardMemory own_memory(const ShardRules& rules, const ShardShape& shape) {
  check_shape(shape);
  return ShardMemory(shape, optimizer::make_optimizer(rules.optimizer)->slots().size(), {});
}

bool is_finite(const Request& push) {
  const auto finite = [](const RowsPushed& rows) { return compression::all_finite(rows.values); };
  return compression::all_finite(push.dense) && std::ranges::all_of(push.rows, finite);
}

}  // namespace

Shard::State::State(const ShardRules& rules, ShardMemory memory, cluster::WorkBoard* board)
    : rules_(rules),
      memory_(std::move(memory)),
      shape_(memory_.shape()),
      board_(board),
      model_(memory_, rules.optimizer),
      ledger_(rules.workers),
      copies_(rules, shape_),
      workers_(static_cast<std::size_t>(rules.workers)),
      kept_(shape_, kept_areas(memory_, rules)) {
  if (!memory_.has_model()) return;
  const ShardRecord record = memory_.record();
  version_ = record.version;
  newest_lr_ = record.lr;
  if (record.kept_pushes > 0) kept_.restore(record.kept_area, record.kept_pushes);
  ledger_.restore(record.ledger_generation, memory_.ledger(), record.counts);
}

void Shard::State::take(Request&& request) {
  const RequestHeader& header = request.header;
  const int number = header.worker;
  serve_rows(request);
  if (header.stop && !sync()) stop_ = true;
  if (header.finished) worker(number).active = false;
  if (header.push) {
    take_push(std::move(request));
  } else if (header.apply) {
    take_apply(std::move(request));
  } else {
    answer_at_once(request, {});
  }
  go_on();
  auto& waiting = worker(number).waiting;
  if (waiting && !waiting->since) waiting->since = Clock::now();
}

/// A push of an earlier group belongs to no round of this one, so a quorum keeps it like a late
/// one.
void Shard::State::take_push(Request&& request) {
  const RequestHeader& header = request.header;
  if (ledger_.has_come(header)) {
    ledger_.record_duplicate();
    return take_again(std::move(request));
  }
  ledger_.accept(header);
  const std::uint64_t staleness = version_ - header.version;
  const bool finite = is_finite(request);
  if (!finite) tell_not_finite(header);
  if (!finite && !sync()) return take_not_finite(request, staleness);
  const bool waits = rules_.late_waits && !rules_.drop_late;
  const bool quorum = rules_.consistency == ShardRules::Consistency::quorum;
  if (quorum && (header.is_again() || (staleness > 0 && !waits))) {
    return take_late(request, staleness);
  }
  newest_lr_ = header.lr;
  worker(header.worker).waiting.emplace(std::move(request), staleness).finite = finite;
}

/// Once for each worker: who sends one often sends many.
void Shard::State::tell_not_finite(const RequestHeader& push) {
  ledger_.record_not_finite();
  if (std::exchange(worker(push.worker).told_not_finite, true)) return;
  log_warn("worker {} pushed numbers that are not finite; its push {} is left out", push.worker,
           push.sequence);
}

/// One worker's accident is not everybody's: nothing of it comes into this part of the model.
void Shard::State::take_not_finite(const Request& push, std::uint64_t staleness) {
  ShardWorker& from = worker(push.header.worker);
  from.last_reply = {.staleness = staleness, .dropped = true};
  drop(push, staleness);
  answer_at_once(push, from.last_reply);
}

/// The work is done, though nothing comes of it. A push of this group leaves its worker free to go
/// on, so that no round waits for it before the next update.
void Shard::State::drop(const Request& push, std::uint64_t staleness) {
  ledger_.record_dropped(staleness);
  ledger_.settle_dropped(push.header);
  if (!push.header.is_again()) worker(push.header.worker).was_dropped = true;
  commit_push(push);
}

/// Kept for the next update, or dropped; either way its worker goes on at once.
void Shard::State::take_late(const Request& request, std::uint64_t staleness) {
  ShardWorker& from = worker(request.header.worker);
  const bool dropped = rules_.drop_late && staleness > 0;
  from.last_reply = {.staleness = staleness, .applied = !dropped, .dropped = dropped};
  if (dropped) {
    drop(request, staleness);
  } else {
    newest_lr_ = request.header.lr;
    keep_for_next(request, staleness);
  }
  answer_at_once(request, from.last_reply);
}

/// Into the next update, whatever becomes of its worker.
void Shard::State::keep_for_next(const Request& push, std::uint64_t staleness) {
  keep(push, staleness);
  ledger_.record_applied(staleness);
  ledger_.settle_applied(push.header);
  commit_push(push);
}

void Shard::State::commit_push(const Request& push) {
  work_is_done(push);
  commit();
  replicate(ReplicaMessage::Kind::push);
}

/// Where nothing is held, or the worker waits already, the answer to its first one was lost.
void Shard::State::take_apply(Request&& request) {
  ShardWorker& from = worker(request.header.worker);
  if (!held_ || from.waiting) return take_again(std::move(request));
  newest_lr_ = request.header.lr;
  from.waiting.emplace(std::move(request));
}

/// A push or apply that has come before: the answer to the first was lost, or will be.
void Shard::State::take_again(Request&& request) {
  const RequestHeader& header = request.header;
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
  reply.waited_seconds = 0;
  answer_at_once(request, reply);
}

void Shard::State::serve_rows(const Request& request) const {
  for (const RowsWanted& wanted : request.rows_wanted) {
    model_.table(wanted.table).copy_rows(wanted.rows, wanted.values);
  }
}

/// Whether nobody has to wait for this worker any more.
bool Shard::State::can_go_without(int number) {
  const ShardWorker& one = worker(number);
  const bool holds = held_ && std::ranges::find(held_->workers, number) != held_->workers.end();
  return !sync() || (!one.active && !one.waiting && !holds);
}

/// What waits of the worker counts, as it does on other servers it has come to; only its answer is
/// no longer wanted. In sync, unless the worker had finished, no step can be made any more, and
/// everybody is told.
void Shard::State::leave(int number) {
  if (!can_go_without(number)) {
    lost_ = Error(ErrorCode::peer_lost,
                  fmt::format("worker {} is gone; no step can be made without it", number))
                .about_rank(number);
    return refuse_all(*lost_);
  }
  std::vector<Request> unanswered;
  for (Request& request : early_) {
    if (request.header.worker == number) unanswered.push_back(std::move(request));
  }
  std::erase_if(early_, [&](const Request& request) { return request.header.worker == number; });
  ShardWorker& left = worker(number);
  left.active = false;
  if (left.waiting) {
    WaitingRequest waiting = std::move(*left.waiting);
    left.waiting.reset();
    if (waiting.request.header.push) keep_for_next(waiting.request, waiting.staleness);
    unanswered.push_back(std::move(waiting.request));
  }
  for (const Request& request : unanswered) {
    request.refuse(
        Error(ErrorCode::peer_lost, fmt::format("worker {} has left", number)).about_rank(number));
  }
  go_on();
}

/// Nothing that waits or is held will be in an update any more.
void Shard::State::refuse_all(const Error& error) {
  std::vector<Request> unanswered = std::exchange(early_, {});
  for (WaitingRequest& one : take_waiting()) {
    if (one.request.header.push) ledger_.record_dropped(one.staleness);
    unanswered.push_back(std::move(one.request));
  }
  held_.reset();
  drop_kept();
  for (const Request& request : unanswered) request.refuse(error);
}

Shard::Shard(const ShardRules& rules, const ShardShape& shape)
    : Shard(rules, own_memory(rules, shape), nullptr) {}

Shard::Shard(const ShardRules& rules, ShardMemory memory, cluster::WorkBoard* board) {
  check_rules(rules);
  check_shape(memory.shape());
  state_ = std::make_unique<State>(rules, std::move(memory), board);
}

Shard::~Shard() = default;

void Shard::initialise(const ModelMessage& model) {
  expect_model(model, model.floats.size());
  put_model(0, model.floats);
  publish_model(model.version);
}

void Shard::expect_model(const ModelMessage& head, std::size_t total) {
  if (state_->memory_.has_model()) {
    fail(ErrorCode::invalid, "this server has its first model already");
  }
  state_->model_.expect(head, total);
}

void Shard::put_model(std::size_t begin, std::span<const float> floats) {
  state_->model_.put(begin, floats);
}

void Shard::publish_model(std::uint64_t version) {
  state_->version_ = version;
  const cluster::WorkLeft work = state_->board_ ? state_->board_->left() : cluster::WorkLeft();
  state_->memory_.publish(state_->record(), &work, state_->ledger_.entries());
  state_->replicate(ReplicaMessage::Kind::whole);
  for (Request& request : std::exchange(state_->early_, {})) submit(std::move(request));
}

void Shard::submit(Request&& request) {
  if (state_->lost_) return request.refuse(*state_->lost_);
  if (!state_->memory_.has_model()) {
    state_->early_.push_back(std::move(request));
    return;
  }
  try {
    state_->check(request);
  } catch (const Error& error) {
    request.refuse(error);
    return;
  } catch (const std::bad_alloc&) {
    request.refuse(Error(ErrorCode::no_space, "the server has no memory left for this request"));
    return;
  }
  state_->take(std::move(request));
}

void Shard::leave(int worker) {
  if (worker < 0 || worker >= state_->rules_.workers) {
    fail(ErrorCode::invalid, "worker {} left; the workers are 0 to {}", worker,
         state_->rules_.workers - 1);
  }
  state_->leave(worker);
}

/// The first one of a group is committed with the ledger, which is then that of this group.
void Shard::note_work(std::int64_t generation, const cluster::Claim& claim) {
  if (state_->ledger_.generation() == generation) return state_->memory_.note_work(claim);
  state_->ledger_.begin(generation);
  state_->commit();
}

void Shard::replicate_by(Replicate replicate) {
  state_->replicate_ = std::move(replicate);
  if (state_->memory_.has_model()) state_->replicate(ReplicaMessage::Kind::whole);
}

std::size_t Shard::floats() const {
  return state_->model_.floats();
}

std::size_t Shard::slots() const {
  return state_->memory_.slots();
}

void Shard::copy_to(std::span<float> all) const {
  state_->model_.copy_to(all);
}

const ShardShape& Shard::shape() const {
  return state_->shape_;
}

std::uint64_t Shard::version() const {
  return state_->version_;
}

std::span<const float> Shard::dense() const {
  return state_->model_.dense();
}

compression::CodecMemory Shard::codec_memory(int worker) {
  return state_->copies_.memory(worker);
}

void Shard::recall_codec(int worker, const compression::CodecMemory& memory) {
  state_->copies_.recall(worker, memory);
}

std::uint64_t Shard::newest_push(int worker) const {
  return state_->ledger_.last(worker);
}

const cluster::PushCounts& Shard::counts() const {
  return state_->ledger_.counts();
}

}  // namespace cohort::server
