#include "server/door/server_desk.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/failpoint.h"
#include "optimizer/optimizer.h"
#include "server/shard/shard_rules.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

/// Whether a model says anything of work: one that was never trained does not.
bool has_work(const cluster::WorkLeft& work) {
  return work.next > 0 || !work.again.empty();
}

}  // namespace

ServerDesk::ServerDesk(const ServerOptions& options)
    : options_(options),
      claims_(static_cast<std::size_t>(options.rules.workers)),
      left_(static_cast<std::size_t>(options.rules.workers)) {
  auto memory = ShardMemory::find(options.memory);
  if (memory && options_.board) options_.board->left = memory->work();
  if (options_.board) board_.emplace(*options_.board);
  if (memory) open(make_shard(std::move(*memory)));
}

std::unique_ptr<Shard> ServerDesk::make_shard(ShardMemory memory) {
  return std::make_unique<Shard>(options_.rules, std::move(memory), board_ ? &*board_ : nullptr);
}

void ServerDesk::open(std::unique_ptr<Shard> shard) {
  shape_ = shard->shape();
  shard_ = std::move(shard);
  if (replicate_) shard_->replicate_by(replicate_);
}

void ServerDesk::replicate_by(Shard::Replicate replicate) {
  replicate_ = std::move(replicate);
  if (shard_) shard_->replicate_by(replicate_);
}

bool ServerDesk::compresses() const {
  return server::compresses(options_.rules.compression);
}

void ServerDesk::initialise(const ModelMessage& model) {
  expect_model(0, model, model.floats.size());
  take_part(0, {.begin = 0, .count = model.floats.size(), .floats = model.floats});
}

/// All sizes, before any memory is taken for them.
void ServerDesk::check_first_model(const ModelMessage& head, std::size_t total) const {
  if (shard_) fail(ErrorCode::invalid, "this server has its first model already");
  check_shape(head.shape);
  const std::size_t slots = optimizer::make_optimizer(options_.rules.optimizer)->slots().size();
  const std::size_t floats = head.shape.floats();
  if (head.slots > slots || total != floats * (1 + head.slots)) {
    fail(ErrorCode::invalid,
         "a first model of {} floats with {} slots was to come in {} floats; that cannot be",
         floats, head.slots, total);
  }
  if (board_ && has_work(head.work) && head.work.parts != options_.board->left.parts) {
    fail(ErrorCode::invalid,
         "the first model was trained on {} parts of every step; this job makes {} of one",
         head.work.parts, options_.board->left.parts);
  }
}

void ServerDesk::expect_model(int worker, const ModelMessage& head, std::size_t total) {
  check_first_model(head, total);
  arriving_.reset();
  if (board_ && has_work(head.work)) {
    options_.board->left = head.work;
    board_.emplace(*options_.board);
  }
  const std::size_t slots = optimizer::make_optimizer(options_.rules.optimizer)->slots().size();
  Arriving next{.worker = worker, .head = head, .total = total};
  next.shard = make_shard(ShardMemory(head.shape, slots, options_.memory));
  next.shard->expect_model(head, total);
  arriving_ = std::move(next);
}

void ServerDesk::take_part(int worker, const ModelPart& part) {
  if (!arriving_ || arriving_->worker != worker || part.begin != arriving_->come ||
      part.floats.size() != part.count || part.count > arriving_->total - arriving_->come) {
    fail(ErrorCode::invalid,
         "worker {} sent {} floats of a first model from number {} on, which were not expected",
         worker, part.count, part.begin);
  }
  arriving_->shard->put_model(part.begin, part.floats);
  arriving_->come += part.count;
  if (arriving_->come < arriving_->total) return;
  auto arrived = std::exchange(arriving_, std::nullopt);
  arrived->shard->publish_model(arrived->head.version);
  open(std::move(arrived->shard));
  for (int left = 0; left < options_.rules.workers; ++left) {
    if (has_left(left)) shard_->leave(left);
  }
}

void ServerDesk::check_generation(const RequestHeader& header) const {
  server::check_generation(header, options_.generation);
}

ReplyHeader ServerDesk::look() const {
  ReplyHeader reply;
  reply.has_model = has_model();
  if (!shard_) return reply;
  reply.version = shard_->version();
  reply.model_floats = shard_->floats();
  return reply;
}

/// Pieces under way belong to workers of this group. Whoever goes on from the model has others, so
/// there they are nobody's.
ModelMessage ServerDesk::read(std::span<float> floats) const {
  if (!shard_) fail(ErrorCode::not_found, "this server has no model yet");
  if (floats.size() < shard_->floats()) {
    fail(ErrorCode::invalid, "a model of {} floats shall go where there is room for {}",
         shard_->floats(), floats.size());
  }
  shard_->copy_to(floats);
  cluster::WorkLeft work = board_ ? board_->left() : cluster::WorkLeft();
  for (cluster::Claim& piece : work.again) piece.taken_by = -1;
  return {.version = shard_->version(),
          .slots = shard_->slots(),
          .work = cluster::shortest(std::move(work)),
          .shape = shape_,
          .floats = floats.first(shard_->floats())};
}

/// The board hears of a push before the shard does: its worker works on nothing now.
void ServerDesk::take(Request&& request, Visit& visit) {
  const RequestHeader& header = request.header;
  if (board_) {
    if (header.stop) board_->stop();
    if (header.push && header.worker >= 0 && header.worker < options_.rules.workers) {
      board_->rest(header.worker);
    }
  }
  if (header.claim) {
    request.answer = [this, worker = header.worker, &visit](const ReplyHeader& reply) {
      finish(worker, reply, visit);
    };
  } else {
    request.answer = [&visit](const ReplyHeader& reply) { visit.answer(reply); };
  }
  request.refuse = [&visit](const Error& error) { visit.refuse(error); };
  shard_->submit(std::move(request));
  retry_claims();
}

void ServerDesk::finish(int worker, const ReplyHeader& reply, Visit& visit) {
  // No work for those who are gone, or for an old request that has come once more: nobody would do
  // it.
  if (has_left(worker) || reply.duplicate) {
    ReplyHeader without = reply;
    without.claim_end = true;
    return visit.answer(without);
  }
  if (!board_) {
    return visit.refuse(Error(ErrorCode::invalid, "this server hands out no work"));
  }
  WaitingClaim waiting{reply, Clock::now(), &visit};
  if (!try_claim(worker, waiting)) {
    claims_[static_cast<std::size_t>(worker)] = waiting;
  }
}

/// False where the reply has to wait on.
bool ServerDesk::try_claim(int worker, WaitingClaim& waiting) {
  cluster::Claim claim;
  const cluster::WorkBoard::Answer answer = board_->claim(worker, claim);
  if (answer == cluster::WorkBoard::Answer::wait) return false;
  try {
    if (answer == cluster::WorkBoard::Answer::claimed) {
      shard_->note_work(options_.generation, {claim.step, claim.part, worker});
      failpoint("server.after-handing-out");
    }
  } catch (const Error& error) {
    waiting.visit->refuse(error);
    return true;
  }
  waiting.reply.claim_end = answer == cluster::WorkBoard::Answer::end;
  waiting.reply.claim_step = claim.step;
  waiting.reply.claim_part = claim.part;
  waiting.reply.waited_seconds += seconds_since(waiting.since);
  waiting.visit->answer(waiting.reply);
  return true;
}

void ServerDesk::retry_claims() {
  for (std::size_t worker = 0; worker < claims_.size(); ++worker) {
    std::optional<WaitingClaim>& waiting = claims_[worker];
    if (waiting && try_claim(static_cast<int>(worker), *waiting)) waiting.reset();
  }
}

compression::CodecMemory ServerDesk::codec_memory(int worker) const {
  return shard_ ? shard_->codec_memory(worker) : compression::CodecMemory();
}

void ServerDesk::recall_codec(int worker, const compression::CodecMemory& memory) {
  if (shard_) shard_->recall_codec(worker, memory);
}

std::uint64_t ServerDesk::newest_push(int worker) const {
  return shard_ ? shard_->newest_push(worker) : 0;
}

void ServerDesk::leave(int worker, LeftWork work) {
  if (worker < 0 || worker >= options_.rules.workers || has_left(worker)) return;
  left_[static_cast<std::size_t>(worker)] = true;
  claims_[static_cast<std::size_t>(worker)].reset();
  if (arriving_ && arriving_->worker == worker) arriving_.reset();
  if (shard_) shard_->leave(worker);  // What it has pushed is done.
  if (board_) leave_work(worker, work);
  retry_claims();
}

void ServerDesk::leave_work(int worker, LeftWork work) {
  switch (work) {
    case LeftWork::handed_out:
      return board_->gone(worker);
    case LeftWork::kept:
      return board_->rest(worker);
    case LeftWork::done:
      return board_->done(worker);
  }
}

bool ServerDesk::all_have_left() const {
  return std::ranges::all_of(left_, [](bool left) { return left; });
}

}  // namespace cohort::server
