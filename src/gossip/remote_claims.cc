#include "gossip/remote_claims.h"

#include "base/log.h"
#include "gossip/remote_message.h"

namespace cohort {
namespace {

class OwnClaims : public CountedClaims {
 public:
  OwnClaims(ClaimCounter& counter, const ClaimRange& range) : counter_(counter), range_(range) {}

  std::optional<Claim> next() override { return counter_.next(range_); }
  void stop() override { counter_.stop(); }
  bool stopped() override { return counter_.stopped(); }
  std::uint64_t bytes_sent() const override { return 0; }
  std::uint64_t bytes_received() const override { return 0; }

 private:
  ClaimCounter& counter_;
  ClaimRange range_;
};

class RemoteClaims : public CountedClaims {
 public:
  RemoteClaims(const std::string& address, int rank, Duration timeout)
      : client_(address), rank_(rank), timeout_(timeout) {}

  std::optional<Claim> next() override {
    if (stopped_) return std::nullopt;
    const ClaimReply reply = read_claim_reply(ask(RemoteHeader::Kind::claim));
    stopped_ = reply.kind == ClaimReply::Kind::stopped;
    if (reply.kind != ClaimReply::Kind::work) return std::nullopt;
    return Claim{.step = reply.step, .part = reply.part};
  }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    try {
      ask(RemoteHeader::Kind::stop);
    } catch (const Error& error) {
      log_warn("rank {} cannot tell rank 0 to stop: {}", rank_, error.what());
    }
  }

  bool stopped() override { return stopped_; }
  std::uint64_t bytes_sent() const override { return client_.bytes_sent(); }
  std::uint64_t bytes_received() const override { return client_.bytes_received(); }

 private:
  Bytes ask(RemoteHeader::Kind kind) {
    const RemoteHeader header{.from = rank_, .kind = kind};
    try {
      return client_.call({bytes_of(header)}, Deadline::in(timeout_));
    } catch (const Error& error) {
      throw error.with_context("asking rank 0, which hands out the work").about_rank(0);
    }
  }

  RpcClient client_;
  int rank_;
  Duration timeout_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<CountedClaims> make_own_claims(ClaimCounter& counter, const ClaimRange& range) {
  return std::make_unique<OwnClaims>(counter, range);
}

std::unique_ptr<CountedClaims> make_remote_claims(const std::string& address, int rank,
                                                  Duration timeout) {
  return std::make_unique<RemoteClaims>(address, rank, timeout);
}

void answer_claim(RpcCall& call, ClaimCounter& counter, const ClaimRange& range) {
  const auto reply = std::make_shared<ClaimReply>();
  if (const auto claim = counter.next(range)) {
    *reply = {.step = claim->step, .part = claim->part, .kind = ClaimReply::Kind::work};
  } else if (counter.stopped()) {
    reply->kind = ClaimReply::Kind::stopped;
  }
  call.reply({bytes_of(*reply)}, [reply] {});
}

}  // namespace cohort
