#include "server/server_desk.h"

#include <algorithm>

#include "base/fail.h"
#include "server/worker_codec.h"

namespace cohort {

ServerDesk::ServerDesk(const ServerOptions& options)
    : options_(options),
      claims_(static_cast<std::size_t>(options.rules.workers)),
      left_(static_cast<std::size_t>(options.rules.workers)) {
  if (options.board) board_.emplace(*options.board);
}

bool ServerDesk::compresses() const {
  return cohort::compresses(options_.rules.compression);
}

void ServerDesk::initialise(const ShardShape& shape, std::span<const float> dense,
                            const std::vector<std::vector<float>>& tables) {
  if (shard_) fail(ErrorCode::invalid, "this server has its first model already");
  auto shard = std::make_unique<Shard>(options_.rules, shape);
  shard->initialise(dense, tables);
  shape_ = shape;
  shard_ = std::move(shard);
}

void ServerDesk::take(Request request, Visit& visit) {
  const RequestHeader header = request.header;
  if (board_) {
    if (header.stop) board_->stop();
    if (header.push && header.worker >= 0 && header.worker < options_.rules.workers) {
      board_->done(header.worker);
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
  if (has_left(worker)) return visit.answer(reply);  // No work for those who are gone.
  if (!board_) {
    return visit.refuse(Error(ErrorCode::invalid, "this server hands out no work"));
  }
  WaitingClaim waiting{reply, Clock::now(), &visit};
  if (!try_claim(worker, waiting)) {
    claims_[static_cast<std::size_t>(worker)] = waiting;
  }
}

bool ServerDesk::try_claim(int worker, WaitingClaim& waiting) {
  Claim claim;
  const WorkBoard::Answer answer = board_->claim(worker, claim);
  if (answer == WorkBoard::Answer::wait) return false;
  waiting.reply.claim_end = answer == WorkBoard::Answer::end;
  waiting.reply.claim_step = claim.step;
  waiting.reply.claim_part = claim.part;
  waiting.reply.held_seconds += seconds_since(waiting.since);
  waiting.visit->answer(waiting.reply);
  return true;
}

void ServerDesk::retry_claims() {
  for (std::size_t worker = 0; worker < claims_.size(); ++worker) {
    std::optional<WaitingClaim>& waiting = claims_[worker];
    if (waiting && try_claim(static_cast<int>(worker), *waiting)) waiting.reset();
  }
}

void ServerDesk::leave(int worker) {
  if (worker < 0 || worker >= options_.rules.workers || has_left(worker)) return;
  left_[static_cast<std::size_t>(worker)] = true;
  claims_[static_cast<std::size_t>(worker)].reset();
  if (board_) board_->done(worker);
  if (shard_) shard_->leave(worker);
  retry_claims();
}

bool ServerDesk::all_have_left() const {
  return std::ranges::all_of(left_, [](bool left) { return left; });
}

}  // namespace cohort
