#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>

#include "base/fail.h"
#include "cluster/handshake.h"
#include "frames.grpc.pb.h"
#include "os/endpoint.h"
#include "rpc/grpc_setup.h"
#include "rpc/rpc.h"
#include "rpc/wire.h"

// The client's end of calls. There are two kinds, which a caller cannot tell apart: streams of
// frames (ClientCall) and, where both messages are small, one frame each way (SmallClientCall), for
// which gRPC wakes a thread once, and not for every frame and for the end. Both run on threads of
// gRPC, live until gRPC has told them that they are over, and leave what came of them in their
// CallResult, where the caller waits; the caller's Pending may be gone long before.

namespace cohort::rpc {

namespace {

/// A channel over a socket that has proved itself. gRPC makes no connection of its own: when this one
/// is lost the channel is of no use any more.
std::shared_ptr<grpc::Channel> channel_over(UniqueFd socket, const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kLargestFrame + 1024);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomInsecureChannelFromFd(address, socket.release(), arguments);
}

/// What the calls of a client share; it lives until the last of them is over.
class ClientConnection {
 public:
  using Stub = std::shared_ptr<rpc::Frames::Stub>;

  ClientConnection(const std::string& to, const cluster::Pass& pass, const cluster::Member& self,
                   const RpcOptions& how)
      : address(to), options(how), pass_(pass), self_(self) {}

  /// As errors name it.
  std::string server() const { return "The server at " + address; }
  /// As errors name what came back from it.
  std::string answer() const { return "The answer of the server at " + address; }

  /// The connection there is, or a new one. Throws Error(peer_lost) where nobody listens, and what
  /// cluster::meet() throws.
  Stub connected(Deadline deadline) {
    const std::lock_guard lock(mutex_);
    if (stub_) return stub_;
    UniqueFd socket = cluster::meet(
        {pass_.secret, cluster::Purpose::calls, self_, server()},
        [&] { return connected_socket(deadline); }, deadline);
    stub_ = rpc::Frames::NewStub(channel_over(std::move(socket), address));
    return stub_;
  }

  /// After a call over it has failed for want of a connection: the next call makes a new one.
  void forget(const Stub& lost) {
    const std::lock_guard lock(mutex_);
    if (stub_ == lost) stub_.reset();
  }

  const std::string address;
  const RpcOptions options;
  std::atomic<std::uint64_t> bytes_sent = 0;
  std::atomic<std::uint64_t> bytes_received = 0;

 private:
  UniqueFd connected_socket(Deadline deadline) const {
    std::string reason;
    UniqueFd socket = os::connect_once(pass_.endpoint_of(address), deadline, reason);
    if (!socket) fail(ErrorCode::peer_lost, "{} cannot be reached: {}.", server(), reason);
    return socket;
  }

  const cluster::Pass pass_;
  const cluster::Member self_;
  std::mutex mutex_;  // Guards stub_.
  Stub stub_;
};

/// As gRPC's contexts take it.
gpr_timespec time_of(Deadline deadline) {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  const auto left = duration_cast<nanoseconds>(deadline.remaining()).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left, GPR_TIMESPAN));
}

/// What has come of a call, and where its caller waits for that.
class CallResult {
 public:
  bool done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  /// The reply, which stays in the call. Throws what the call failed with.
  Bytes& wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return done_; });
    if (!failure_) return reader_.message();
    try {
      std::rethrow_exception(failure_);
    } catch (const std::bad_alloc&) {
      fail(ErrorCode::no_space, "There is no memory for a call to the server at {}.",
           connection_->address);
    }
  }

 protected:
  CallResult(std::shared_ptr<ClientConnection> connection, ClientConnection::Stub stub,
             std::size_t reply_limit)
      : connection_(std::move(connection)), stub_(std::move(stub)), reader_(reply_limit) {}
  ~CallResult() = default;

  /// False where it throws: the call fails with that, if with nothing before. gRPC, on whose threads
  /// it is, would forget the exception, and the caller wait in vain. With the lock held.
  template <class Action>
  bool succeeds(Action&& action) {
    try {
      action();
      return true;
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      return false;
    }
  }

  /// Takes what the server says is wrong with the answer that came, or with the call. Within
  /// succeeds().
  template <class Read>
  void read(Read&& read_frame) {
    try {
      read_frame();
    } catch (const Error& error) {
      throw error.with_context(connection_->answer());
    }
  }

  /// The call has failed with this. With the lock held.
  void fail_with(const grpc::Status& status) {
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) connection_->forget(stub_);
    succeeds([&] { throw error_of(status, connection_->server()); });  // Kept as the failure.
  }

  /// After done_ was set and the mutex let go, so that whoever is woken finds it free.
  void tell_who_waits() { ended_.notify_all(); }

  const std::shared_ptr<ClientConnection> connection_;
  const ClientConnection::Stub stub_;

  std::mutex mutex_;  // Guards what follows.
  FrameReader reader_;
  bool done_ = false;
  std::exception_ptr failure_;  // Of several, the first.

 private:
  std::condition_variable ended_;
};

/// A call as two streams of frames, as gRPC drives it from begin() to OnDone(), until which it
/// keeps itself alive. gRPC calls one On… of a kind at a time, on threads of its own; reading and
/// writing go on side by side, since a server may refuse a message before all of it was sent.
class ClientCall final : public grpc::ClientBidiReactor<rpc::Frame, rpc::Frame>, public CallResult {
 public:
  ClientCall(std::shared_ptr<ClientConnection> connection, ClientConnection::Stub stub,
             const MessageParts& parts, std::size_t reply_limit)
      : CallResult(std::move(connection), std::move(stub), reply_limit),
        writer_(parts, connection_->options.frame_bytes) {
    all_written_ = writer_.fill(sending_);
  }

  void begin(std::shared_ptr<ClientCall> self, Deadline deadline) {
    self_ = std::move(self);
    context_.set_deadline(time_of(deadline));
    stub_->async()->Call(&context_, this);
    StartRead(&received_);
    send(all_written_);
    StartCall();
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
        fail_with(status);
      } else if (!failure_ && !reader_.complete()) {
        succeeds([&] { fail(ErrorCode::corrupt, "{} ends too early.", connection_->answer()); });
      }
      done_ = true;
    }
    tell_who_waits();
  }

 private:
  void write_next() {
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      if (abandoned_ || all_written_) return;
      if (!succeeds([&] { all_written_ = writer_.fill(sending_); })) return context_.TryCancel();
      last = all_written_;
    }
    send(last);
  }

  void send(bool last) {
    connection_->bytes_sent += bytes_on_wire(sending_);
    last ? StartWriteLast(&sending_, {}) : StartWrite(&sending_);
  }

  bool take() {
    connection_->bytes_received += bytes_on_wire(received_);
    const std::lock_guard lock(mutex_);
    if (succeeds([&] { read([&] { reader_.take(received_); }); })) return true;
    context_.TryCancel();
    return false;
  }

  std::shared_ptr<ClientCall> self_;  // From begin() to OnDone().
  grpc::ClientContext context_;
  rpc::Frame sending_;   // gRPC's from StartWrite to OnWriteDone.
  rpc::Frame received_;  // gRPC's from StartRead to OnReadDone.

  // Guarded by mutex_, as what CallResult has.
  FrameWriter writer_;
  bool all_written_ = false;
  bool abandoned_ = false;
};

/// A call of one frame each way: end() is called once, on a thread of gRPC, which keeps the call
/// alive until then. Nothing is read from the parts after the constructor.
class SmallClientCall final : public CallResult {
 public:
  SmallClientCall(std::shared_ptr<ClientConnection> connection, ClientConnection::Stub stub,
                  const MessageParts& parts, std::size_t reply_limit)
      : CallResult(std::move(connection), std::move(stub), reply_limit) {
    FrameWriter(parts, kLargestFrame).fill(sending_);
  }

  void begin(const std::shared_ptr<SmallClientCall>& self, Deadline deadline) {
    context_.set_deadline(time_of(deadline));
    connection_->bytes_sent += bytes_on_wire(sending_);
    stub_->async()->SmallCall(&context_, &sending_, &received_,
                              [self](const grpc::Status& status) { self->end(status); });
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
        fail_with(status);
      }
      done_ = true;
    }
    tell_who_waits();
  }

  void take() {
    connection_->bytes_received += bytes_on_wire(received_);
    succeeds([&] { read([&] { reader_.take_whole(received_); }); });
  }

  grpc::ClientContext context_;
  rpc::Frame sending_;
  rpc::Frame received_;
};

/// A call under way as its caller holds it.
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

/// A call for which there was no connection.
class FailedCall final : public RpcClient::Pending {
 public:
  explicit FailedCall(const Error& failure) : failure_(failure) {}
  bool done() override { return true; }
  Bytes& wait() override { throw failure_; }

 private:
  const Error failure_;
};

template <class Call>
std::unique_ptr<RpcClient::Pending> begin_call(std::shared_ptr<ClientConnection> connection,
                                               const MessageParts& parts, Deadline deadline,
                                               std::size_t reply_limit) {
  std::shared_ptr<Call> call;
  try {
    ClientConnection::Stub stub = connection->connected(deadline);
    call = std::make_shared<Call>(std::move(connection), std::move(stub), parts, reply_limit);
  } catch (const Error& error) {
    return std::make_unique<FailedCall>(error);
  } catch (const std::bad_alloc&) {
    return std::make_unique<FailedCall>(
        Error(ErrorCode::no_space, "there is no memory left to send a message"));
  }
  call->begin(call, deadline);
  return std::make_unique<PendingCall<Call>>(std::move(call));
}

/// What the client takes of any reply, or of this one, where more is known to come: twice as much,
/// since a codec's message may be a little longer than the floats.
std::size_t limit_of_reply(const RpcOptions& options, std::size_t reply_bytes) {
  if (reply_bytes == kReplyOfAnySize) return options.max_message_bytes;
  return std::max(options.max_message_bytes, 2 * reply_bytes);
}

}  // namespace

struct RpcClient::State : ClientConnection {
  using ClientConnection::ClientConnection;
};

RpcClient::RpcClient(const std::string& address, const cluster::Pass& pass,
                     const cluster::Member& self, const RpcOptions& options)
    : state_(std::make_shared<State>(address, pass, self, options)) {
  prepare_grpc();
}

RpcClient::~RpcClient() = default;

void RpcClient::connect(Deadline deadline) {
  try {
    state_->connected(deadline);
  } catch (const Error&) {
    // The first call tries again, and fails with the reason.
  }
}

std::unique_ptr<RpcClient::Pending> RpcClient::start(const MessageParts& parts, Deadline deadline,
                                                     std::size_t reply_bytes) {
  std::size_t request_bytes = 0;
  for (const auto& part : parts) request_bytes += part.size();
  const std::size_t limit = limit_of_reply(state_->options, reply_bytes);
  if (std::max(request_bytes, reply_bytes) <= kSmallMessage) {
    return begin_call<SmallClientCall>(state_, parts, deadline, limit);
  }
  return begin_call<ClientCall>(state_, parts, deadline, limit);
}

Bytes RpcClient::call(const MessageParts& parts, Deadline deadline, std::size_t reply_bytes) {
  return std::move(start(parts, deadline, reply_bytes)->wait());
}

Traffic RpcClient::traffic() const {
  return {.sent = state_->bytes_sent, .received = state_->bytes_received};
}

}  // namespace cohort::rpc
