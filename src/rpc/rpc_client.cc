#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/fail.h"
#include "rpc/call_status.h"
#include "rpc/client_connection.h"
#include "rpc/frame_stream.h"
#include "rpc/hold_callbacks.h"
#include "rpc/rpc.h"
#include "rpc/silence_grpc.h"
#include "rpc/small_client_call.h"

namespace cohort {

namespace {

std::shared_ptr<grpc::Channel> connect(const std::string& address) {
  silence_grpc();
  hold_grpc_callbacks();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(kLargestFrame + 1024);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

/// One call as gRPC drives it, from begin() to OnDone(), until which it keeps itself alive. gRPC
/// calls one On… of a kind at a time, on threads of its own.
class ClientCall final : public grpc::ClientBidiReactor<rpc::Frame, rpc::Frame> {
 public:
  ClientCall(std::shared_ptr<ClientConnection> connection, const MessageParts& parts)
      : connection_(std::move(connection)),
        writer_(parts, connection_->options.frame_bytes),
        reader_(connection_->options.max_message_bytes) {}

  void begin(std::shared_ptr<ClientCall> self, Deadline deadline) {
    self_ = std::move(self);
    context_.set_deadline(time_of(deadline));
    connection_->stub->async()->Call(&context_, this);
    StartRead(&received_);
    write_next();
    StartCall();
  }

  bool done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  Bytes& wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return done_; });
    if (failure_) throw *failure_;
    return reader_.message();
  }

  /// From now on nothing is read from the parts.
  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      if (done_) return;
      abandoned_ = true;
    }
    context_.TryCancel();
  }

  void OnWriteDone(bool ok) override {
    if (ok) write_next();
  }

  void OnReadDone(bool ok) override {
    if (ok && take()) StartRead(&received_);
  }

  void OnDone(const grpc::Status& status) override {
    // Declared before the lock: what it keeps alive has the mutex in it.
    const auto self = std::move(self_);
    {
      const std::lock_guard lock(mutex_);
      if (!failure_ && !status.ok()) {
        failure_ = error_of(status, connection_->server());
      } else if (!failure_ && !reader_.complete()) {
        failure_ = Error(ErrorCode::corrupt, "The answer of the server at " + connection_->address +
                                                 " ends too early.");
      }
      done_ = true;
    }
    ended_.notify_all();  // Whoever is woken finds the mutex free.
  }

 private:
  void write_next() {
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      if (abandoned_ || all_written_) return;
      last = all_written_ = writer_.fill(sending_);
    }
    connection_->bytes_sent += bytes_on_wire(sending_);
    last ? StartWriteLast(&sending_, {}) : StartWrite(&sending_);
  }

  bool take() {
    connection_->bytes_received += bytes_on_wire(received_);
    const std::lock_guard lock(mutex_);
    try {
      reader_.take(received_);
      return true;
    } catch (const Error& error) {
      failure_ = error.with_context("The answer of the server at " + connection_->address);
      context_.TryCancel();
      return false;
    }
  }

  const std::shared_ptr<ClientConnection> connection_;
  std::shared_ptr<ClientCall> self_;
  grpc::ClientContext context_;
  rpc::Frame sending_;
  rpc::Frame received_;

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable ended_;
  FrameWriter writer_;
  FrameReader reader_;
  bool all_written_ = false;
  bool abandoned_ = false;
  bool done_ = false;
  std::optional<Error> failure_;
};

}  // namespace

gpr_timespec time_of(Deadline deadline) {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  const auto left = duration_cast<nanoseconds>(deadline.remaining()).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left, GPR_TIMESPAN));
}

struct RpcClient::State : ClientConnection {
  using ClientConnection::ClientConnection;
};

RpcClient::RpcClient(const std::string& address, const RpcOptions& options)
    : state_(std::make_shared<State>(address, options)) {
  state_->stub = rpc::Frames::NewStub(connect(address));
}

RpcClient::~RpcClient() = default;

std::unique_ptr<RpcClient::Pending> RpcClient::start(const MessageParts& parts, Deadline deadline,
                                                     std::size_t reply_bytes) {
  std::size_t request_bytes = 0;
  for (const auto& part : parts) request_bytes += part.size();
  if (std::max(request_bytes, reply_bytes) <= kSmallMessage) {
    return start_small_call(state_, parts, deadline);
  }
  auto call = std::make_shared<ClientCall>(state_, parts);
  call->begin(call, deadline);
  return std::make_unique<PendingCall<ClientCall>>(std::move(call));
}

Bytes RpcClient::call(const MessageParts& parts, Deadline deadline, std::size_t reply_bytes) {
  return std::move(start(parts, deadline, reply_bytes)->wait());
}

std::uint64_t RpcClient::bytes_sent() const {
  return state_->bytes_sent;
}

std::uint64_t RpcClient::bytes_received() const {
  return state_->bytes_received;
}

}  // namespace cohort
