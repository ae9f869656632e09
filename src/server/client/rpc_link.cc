#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/fail.h"
#include "cluster/host_id.h"
#include "rpc/rpc.h"
#include "server/client/server_link.h"

namespace cohort::server {
namespace {

/// Everything travels by gRPC. A request whose server cannot be reached is made again until its
/// deadline; by its number the server knows it, and does nothing twice.
class RpcLink : public ServerLink {
 public:
  RpcLink(const RpcLinkOptions& options, Deadline deadline)
      : address_(options.address),
        outgoing_(options.outgoing),
        watch_(watch_server(options.address)),
        client_(options.address.rpc, options.pass,
                worker_member(options.worker, options.generation)),
        number_(std::uint64_t{std::random_device()()} << 32) {
    if (address_.host != cluster::host_id()) return;
    greet_server(client_, header_from(options.generation, options.worker), {.pid = ::getpid()},
                 deadline);
  }

  void start(Request& request, const Timeout& timeout) override {
    pending_.reset();  // It reads what changes now.
    message_.clear();
    request.number = ++number_;
    write_request(message_, request);
    parts_ = {message_};
    if (request.header.push) {
      parts_.push_back(request.encoded.empty() ? std::as_bytes(outgoing_) : request.encoded);
    }
    wanted_.assign(request.rows_wanted.begin(), request.rows_wanted.end());
    may_try_again_ = request.kind == RequestKind::exchange;
    reply_bytes_ = kReplyBytes + (request.header.pull ? outgoing_.size_bytes() : 0);
    for (const RowsWanted& wanted : wanted_) reply_bytes_ += wanted.values.size_bytes();
    pending_ = client_.start(parts_, timeout.deadline(), reply_bytes_);
  }

  Reply wait(const Timeout& timeout) override {
    const Deadline deadline = timeout.deadline();
    while (true) {
      try {
        const Reply reply = read_reply(pending_->wait());
        place_rows(reply, wanted_);
        return reply;
      } catch (const Error& error) {
        // A server that blames a worker has answered.
        const bool lost = error.code() == ErrorCode::peer_lost && !error.rank();
        if (!lost || !may_try_again_ || deadline.passed()) throw;
      }
      try_again(deadline);
    }
  }

  Traffic traffic() const override { return client_.traffic(); }

 private:
  /// Not where the server's process is known to have ended: then nobody will ever answer.
  void try_again(Deadline deadline) {
    constexpr Duration kPause = std::chrono::milliseconds(20);
    check_server(watch_, address_);
    std::this_thread::sleep_for(std::min(kPause, deadline.remaining()));
    pending_ = client_.start(parts_, deadline, reply_bytes_);
  }

  const ServerAddress address_;
  const std::span<const float> outgoing_;
  os::PeerWatch watch_;
  rpc::RpcClient client_;
  std::uint64_t number_;  // Starts anywhere, so that a worker's second link repeats none.
  rpc::Bytes message_;
  rpc::MessageParts parts_;
  std::vector<RowsWanted> wanted_;
  std::size_t reply_bytes_ = 0;  // No more than so many.
  bool may_try_again_ = false;
  std::unique_ptr<rpc::RpcClient::Pending> pending_;
};

}  // namespace

std::unique_ptr<ServerLink> make_rpc_link(const RpcLinkOptions& options, Deadline deadline) {
  return std::make_unique<RpcLink>(options, deadline);
}

}  // namespace cohort::server
