#pragma once

#include <grpc/support/time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "frames.grpc.pb.h"
#include "rpc/rpc.h"

namespace cohort {

/// What the calls of a client share; it lives until the last of them is over.
struct ClientConnection {
  ClientConnection(const std::string& to, const RpcOptions& how) : address(to), options(how) {}

  /// As errors name it.
  std::string server() const { return "The server at " + address; }

  const std::string address;
  const RpcOptions options;
  std::unique_ptr<rpc::Frames::Stub> stub;
  std::atomic<std::uint64_t> bytes_sent = 0;
  std::atomic<std::uint64_t> bytes_received = 0;
};

/// A call under way, a stream or a small one, as its caller holds it.
template <class Call>
class PendingCall final : public RpcClient::Pending {
 public:
  explicit PendingCall(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  ~PendingCall() override { call_->abandon(); }

  bool done() override { return call_->done(); }
  Bytes& wait() override { return call_->wait(); }

 private:
  std::shared_ptr<Call> call_;
};

/// As gRPC's contexts take it.
gpr_timespec time_of(Deadline deadline);

}  // namespace cohort
