#include "rpc/small_client_call.h"

#include <grpcpp/client_context.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "rpc/call_status.h"
#include "rpc/frame_stream.h"

namespace cohort {
namespace {

/// One call as gRPC drives it: end() is called once, on a thread of gRPC, which keeps the call
/// alive until then.
class SmallClientCall {
 public:
  SmallClientCall(std::shared_ptr<ClientConnection> connection, const MessageParts& parts)
      : connection_(std::move(connection)), reader_(connection_->options.max_message_bytes) {
    FrameWriter(parts, kLargestFrame).fill(sending_);
  }

  void begin(const std::shared_ptr<SmallClientCall>& self, Deadline deadline) {
    context_.set_deadline(time_of(deadline));
    connection_->bytes_sent += bytes_on_wire(sending_);
    connection_->stub->async()->SmallCall(
        &context_, &sending_, &received_,
        [self](const grpc::Status& status) { self->end(status); });
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

  void abandon() {
    if (!done()) context_.TryCancel();
  }

 private:
  void end(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (status.ok()) {
        take();
      } else {
        failure_ = error_of(status, connection_->server());
      }
      done_ = true;
    }
    ended_.notify_all();  // Whoever is woken finds the mutex free.
  }

  void take() {
    connection_->bytes_received += bytes_on_wire(received_);
    try {
      reader_.take_whole(received_);
    } catch (const Error& error) {
      failure_ = error.with_context("The answer of the server at " + connection_->address);
    }
  }

  const std::shared_ptr<ClientConnection> connection_;
  grpc::ClientContext context_;
  rpc::Frame sending_;
  rpc::Frame received_;

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable ended_;
  FrameReader reader_;
  bool done_ = false;
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<RpcClient::Pending> start_small_call(std::shared_ptr<ClientConnection> connection,
                                                     const MessageParts& parts, Deadline deadline) {
  auto call = std::make_shared<SmallClientCall>(std::move(connection), parts);
  call->begin(call, deadline);
  return std::make_unique<PendingCall<SmallClientCall>>(std::move(call));
}

}  // namespace cohort
