#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "gossip/boxes/remote_message.h"
#include "gossip/claims.h"
#include "rpc/rpc.h"

namespace cohort::gossip {
namespace {

/// What is left, as it travels behind a ClaimReply: the next number, then those to do again.
std::vector<std::int64_t> numbers_of(const cluster::WorkLeft& work) {
  std::vector<std::int64_t> numbers = {work.next};
  for (const cluster::Claim& claim : work.again)
    numbers.push_back(claim.step * work.parts + claim.part);
  return numbers;
}

cluster::WorkLeft work_of(std::span<const std::byte> bytes, std::int64_t parts) {
  std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
  if (numbers.empty() || bytes.size() % sizeof(std::int64_t) != 0) {
    fail(ErrorCode::corrupt, "{} bytes do not say what work is left", bytes.size());
  }
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  cluster::WorkLeft work{.next = numbers[0], .parts = parts, .again = {}};
  if (std::ranges::any_of(numbers, [](std::int64_t number) { return number < 0; })) {
    fail(ErrorCode::corrupt, "what is said to be left to do is no work of any job");
  }
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    work.again.push_back(
        {.step = numbers[i] / parts, .part = static_cast<int>(numbers[i] % parts)});
  }
  return work;
}

/// A worker that asks rank 0. What it has done it tells twice: by a call that it does not wait for,
/// so that rank 0 knows soon, and with its next question, so that nothing depends on that call.
class RemoteClaims : public Claims {
 public:
  explicit RemoteClaims(const RemoteClaimsOptions& options)
      : options_(options),
        client_(options.address, options.pass, member_of(options.rank)),
        left_(options.work) {}

  std::optional<cluster::Claim> next() override {
    if (stopped_) return std::nullopt;
    const rpc::Bytes answer = ask(RemoteHeader::Kind::claim);
    const ClaimReply reply = read_claim_reply(answer);
    left_ = work_of(std::span(answer).subspan(sizeof(reply)), options_.work.parts);
    stopped_ = reply.kind == ClaimReply::Kind::stopped;
    if (reply.kind != ClaimReply::Kind::work) return std::nullopt;
    if (reply.step < 0 || reply.part < 0 || reply.part >= options_.work.parts) {
      fail(ErrorCode::corrupt, "rank 0 hands out part {} of {} of step {}", reply.part,
           options_.work.parts, reply.step);
    }
    working_on_ = cluster::Claim{.step = reply.step, .part = reply.part};
    return working_on_;
  }

  // Whoever counts should know soon, but nobody waits for it: the next question says it again.
  void done() override {
    if (!working_on_) return;
    std::erase_if(left_.again, [&](const cluster::Claim& claim) {
      return claim.step == working_on_->step && claim.part == working_on_->part;
    });
    done_ = std::exchange(working_on_, std::nullopt);
    telling_.reset();
    telling_header_ = header(RemoteHeader::Kind::done);
    telling_ = client_.start({bytes_of(telling_header_)}, Deadline::in(options_.timeout));
  }

  void finish() override {
    telling_.reset();
    if (done_) ask(RemoteHeader::Kind::done);
  }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    try {
      ask(RemoteHeader::Kind::stop);
    } catch (const Error& error) {
      log_warn("rank {} cannot tell rank 0 to stop: {}", options_.rank, error.what());
    }
  }

  bool stopped() override { return stopped_; }
  cluster::WorkLeft left() const override { return left_; }
  Traffic traffic() const override { return client_.traffic(); }

 private:
  RemoteHeader header(RemoteHeader::Kind kind) const {
    RemoteHeader header{.from = options_.rank, .kind = kind};
    if (done_) {
      header.has_done = 1;
      header.step = done_->step;
      header.part = done_->part;
    }
    return header;
  }

  rpc::Bytes ask(RemoteHeader::Kind kind) {
    const RemoteHeader question = header(kind);
    try {
      rpc::Bytes answer = client_.call({bytes_of(question)}, Deadline::in(options_.timeout));
      done_.reset();
      return answer;
    } catch (const Error& error) {
      throw error.with_context("asking rank 0, which hands out the work").about_rank(0);
    }
  }

  RemoteClaimsOptions options_;
  rpc::RpcClient client_;
  cluster::WorkLeft left_;  // As rank 0 said last.
  std::optional<cluster::Claim> working_on_;
  std::optional<cluster::Claim> done_;  // And rank 0 may not know.
  bool stopped_ = false;
  RemoteHeader telling_header_;
  std::unique_ptr<rpc::RpcClient::Pending> telling_;  // Last: it reads what stands above.
};

}  // namespace

std::unique_ptr<Claims> make_remote_claims(const RemoteClaimsOptions& options) {
  return std::make_unique<RemoteClaims>(options);
}

void answer_claim(rpc::RpcCall& call, ClaimCounter& counter, const RemoteHeader& header) {
  struct Answer {
    ClaimReply reply;
    std::vector<std::int64_t> left;
  };
  if (header.has_done != 0) counter.done(header.from, {header.step, header.part});
  if (header.kind == RemoteHeader::Kind::stop) counter.stop();
  if (header.kind != RemoteHeader::Kind::claim) return call.reply({});
  const auto answer = std::make_shared<Answer>();
  if (const auto claim = counter.next(header.from)) {
    answer->reply = {.step = claim->step, .part = claim->part, .kind = ClaimReply::Kind::work};
  } else if (counter.stopped()) {
    answer->reply.kind = ClaimReply::Kind::stopped;
  }
  answer->left = numbers_of(counter.left());
  call.reply({bytes_of(answer->reply), std::as_bytes(std::span(answer->left))}, [answer] {});
}

}  // namespace cohort::gossip
