// Rank 0's answers to a worker that asks for work, and what the worker makes of them.

#include <array>

#include "base/fail.h"
#include "gossip/boxes/remote_message.h"
#include "gossip/claims.h"
#include "rpc/rpc.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

constexpr int kParts = 3;

/// A claim that never was on a network; keeps what it is answered.
class AskedHere : public rpc::RpcCall {
 public:
  explicit AskedHere(std::string& answer) : answer_(answer) {}

  std::span<const std::byte> request() const override { return {}; }
  const cluster::Member& caller() const override { return caller_; }
  void reply(const rpc::MessageParts& parts, std::function<void()>) override {
    for (const Bytes part : parts) answer_.append(text_of(part));
  }
  void fail(const Error&) override {}

 private:
  std::string& answer_;
  cluster::Member caller_;
};

std::string answer_of(gossip::ClaimCounter& counter, int rank) {
  std::string answer;
  AskedHere call(answer);
  gossip::answer_claim(call, counter, {.from = rank, .kind = gossip::RemoteHeader::Kind::claim});
  return answer;
}

}  // namespace

void claims(Bytes input) {
  const gossip::ClaimAnswer answer = gossip::read_claim_answer(input, kParts);
  const gossip::ClaimRange range{.work = answer.left, .end_step = 9};
  require(gossip::whole_steps(answer.left) >= 0, "steps are counted from 0");
  (void)gossip::merged_work(std::span(&answer.left, 1));
  if (answer.reply.kind != gossip::ClaimReply::Kind::work) return;
  require(answer.reply.step >= 0 && answer.reply.part >= 0 && answer.reply.part < kParts,
          "a piece is one that there can be");
  (void)range.pieces_before({.step = answer.reply.step, .part = answer.reply.part});
}

Seeds claims_seeds() {
  alignas(64) std::array<std::byte, 1024> memory{};
  const gossip::ClaimRange range{.work = {.next = 5, .parts = kParts, .again = {{0, 2}}},
                                 .end_step = 3};
  gossip::ClaimCounter counter(memory, 2, range);
  Seeds seeds = {answer_of(counter, 1), answer_of(counter, 0), answer_of(counter, 1)};
  counter.stop();
  seeds.push_back(answer_of(counter, 1));
  return seeds;
}

}  // namespace cohort::fuzz
