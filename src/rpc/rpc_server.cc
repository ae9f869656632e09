#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/failpoint.h"
#include "cluster/doorkeeper.h"
#include "frames.grpc.pb.h"
#include "os/endpoint.h"
#include "rpc/grpc_setup.h"
#include "rpc/rpc.h"
#include "rpc/wire.h"

// The server's end of calls, of the two kinds that rpc_client.cc has. Each is driven by gRPC on its
// threads and kept alive by itself until gRPC has told it that it is over (OnDone). The handler
// gets an RpcCall, which it may answer at once or hand to another thread; the call may be over
// before, because its client has gone or its deadline has passed, and is then answered into
// nowhere.

namespace cohort::rpc {
namespace {

Error no_memory() {
  return Error(ErrorCode::no_space, "The server has no memory for this call.");
}

/// A call as two streams of frames.
///
///   reading ----------> waiting -------> replying ----------> finished
///   frames come         the handler      frames go            gRPC was told the status
///      |                   |                 |
///      | broken message    | fail(),         | a frame cannot be sent
///      +-> finished        | cancelled       +-> finished
///                          +-> finished
///
/// gRPC must be told the status exactly once: by whoever moves the call to `finished`, which the
/// mutex makes one of handler, OnCancel and the frames' callbacks. A call that is cancelled while
/// frames are on their way is finished by the next callback of a frame, not by OnCancel: gRPC still
/// has the frame.
class ServerCall final : public grpc::ServerBidiReactor<rpc::Frame, rpc::Frame> {
 public:
  ServerCall(const RpcServer::Handler& handler, const RpcOptions& options,
             const cluster::Member& caller)
      : handler_(handler),
        frame_bytes_(options.frame_bytes),
        caller_(caller),
        reader_(options.max_message_bytes) {}

  void begin(std::shared_ptr<ServerCall> self) {
    self_ = std::move(self);
    StartRead(&received_);
  }

  std::span<const std::byte> request() const { return reader_.message(); }
  const cluster::Member& caller() const { return caller_; }

  void reply(const MessageParts& parts, std::function<void()> sent) {
    FrameWriter writer(parts, frame_bytes_);
    {
      const std::lock_guard lock(mutex_);
      if (stage_ == Stage::waiting) {
        stage_ = Stage::replying;
        writer_ = std::move(writer);
        sent_ = std::exchange(sent, {});
      }
    }
    if (sent) return sent();  // The call is already over.
    write_next();
  }

  void fail(const Error& error) {
    if (leave_stage(Stage::waiting)) Finish(status_of(error));
  }

  void OnReadDone(bool ok) override {
    try {
      if (ok) {
        reader_.take(received_);
        return StartRead(&received_);
      }
      if (!reader_.complete()) cohort::fail(ErrorCode::corrupt, "A message ends too early.");
      dispatch();
    } catch (const Error& error) {
      if (leave_stage(Stage::reading)) Finish(status_of(error));
    } catch (const std::bad_alloc&) {
      if (leave_stage(Stage::reading)) Finish(status_of(no_memory()));
    }
  }

  void OnWriteDone(bool ok) override {
    if (ok) return write_next();
    if (leave_stage(Stage::replying)) Finish(grpc::Status::CANCELLED);
  }

  void OnCancel() override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    // While frames are on their way, the next OnReadDone or OnWriteDone finishes the call.
    if (leave_stage(Stage::waiting)) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    const auto self = std::move(self_);
    std::function<void()> sent;
    {
      const std::lock_guard lock(mutex_);
      sent = std::exchange(sent_, {});
    }
    if (sent) sent();
  }

 private:
  enum class Stage { reading, waiting, replying, finished };

  /// True when the call was in this stage; then it is finished and the caller says so to gRPC.
  bool leave_stage(Stage stage) {
    const std::lock_guard lock(mutex_);
    if (stage_ != stage) return false;
    stage_ = Stage::finished;
    return true;
  }

  void dispatch();

  void write_next() {
    bool last = false;
    try {
      const std::lock_guard lock(mutex_);
      if (stage_ != Stage::replying) return;
      last = writer_.fill(sending_);
      if (last) stage_ = Stage::finished;
    } catch (const std::bad_alloc&) {
      if (leave_stage(Stage::replying)) Finish(status_of(no_memory()));
      return;
    }
    last ? StartWriteAndFinish(&sending_, {}, grpc::Status::OK) : StartWrite(&sending_);
  }

  const RpcServer::Handler& handler_;
  const std::size_t frame_bytes_;
  const cluster::Member caller_;
  std::shared_ptr<ServerCall> self_;  // From begin() to OnDone().
  rpc::Frame received_;               // gRPC's from StartRead to OnReadDone.
  rpc::Frame sending_;                // gRPC's from StartWrite to OnWriteDone.
  FrameReader reader_;                // Unchanged from `waiting` on, so that the handler may read.

  std::mutex mutex_;  // Guards what follows.
  Stage stage_ = Stage::reading;
  bool cancelled_ = false;
  FrameWriter writer_{{}, 1};   // Of the reply, from `replying` on.
  std::function<void()> sent_;  // Called once, by reply() or OnDone().
};

/// The handler's end of a call.
class AnswerableCall final : public RpcCall {
 public:
  explicit AnswerableCall(std::shared_ptr<ServerCall> call) : call_(std::move(call)) {}
  ~AnswerableCall() override {
    call_->fail(Error(ErrorCode::peer_lost, "The server has ended without an answer."));
  }

  std::span<const std::byte> request() const override { return call_->request(); }
  const cluster::Member& caller() const override { return call_->caller(); }
  void reply(const MessageParts& parts, std::function<void()> sent) override {
    call_->reply(parts, std::move(sent));
  }
  void fail(const Error& error) override { call_->fail(error); }

 private:
  std::shared_ptr<ServerCall> call_;
};

void ServerCall::dispatch() {
  auto answerable = std::make_unique<AnswerableCall>(self_);
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    cancelled = cancelled_;
    stage_ = cancelled ? Stage::finished : Stage::waiting;
  }
  if (cancelled) return Finish(grpc::Status::CANCELLED);
  handler_(std::move(answerable));
}

/// A call of one frame each way. The frames are gRPC's and valid until Finish(). It is finished
/// once, by whoever is the first to end it.
class SmallServerCall final : public grpc::ServerUnaryReactor {
 public:
  SmallServerCall(rpc::Frame& reply, const RpcOptions& options, const cluster::Member& caller)
      : reply_(reply), caller_(caller), reader_(options.max_message_bytes) {}

  void keep(std::shared_ptr<SmallServerCall> self) { self_ = std::move(self); }
  void take(const rpc::Frame& request) { reader_.take_whole(request); }
  std::span<const std::byte> request() const { return reader_.message(); }
  const cluster::Member& caller() const { return caller_; }

  /// False when the call is over already.
  bool end() { return !over_.exchange(true); }

  void reply(FrameWriter writer) {
    if (writer.total() > kLargestFrame) {
      const auto text =
          fmt::format("A reply of {} bytes is too large for a call that was made for a small one.",
                      writer.total());
      return Finish(status_of(Error(ErrorCode::invalid, text)));
    }
    try {
      writer.fill(reply_);
    } catch (const std::bad_alloc&) {
      return Finish(status_of(no_memory()));
    }
    Finish(grpc::Status::OK);
  }

  void OnCancel() override {
    if (end()) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { const auto self = std::move(self_); }

 private:
  std::shared_ptr<SmallServerCall> self_;
  rpc::Frame& reply_;
  const cluster::Member caller_;
  FrameReader reader_;
  std::atomic<bool> over_ = false;
};

/// The handler's end of it.
class AnswerableSmallCall final : public RpcCall {
 public:
  explicit AnswerableSmallCall(std::shared_ptr<SmallServerCall> call) : call_(std::move(call)) {}
  ~AnswerableSmallCall() override {
    fail(Error(ErrorCode::peer_lost, "The server has ended without an answer."));
  }

  std::span<const std::byte> request() const override { return call_->request(); }
  const cluster::Member& caller() const override { return call_->caller(); }

  /// The parts are copied, so they are needed no longer.
  void reply(const MessageParts& parts, std::function<void()> sent) override {
    FrameWriter writer(parts, kLargestFrame);
    if (call_->end()) call_->reply(std::move(writer));
    if (sent) sent();
  }

  void fail(const Error& error) override {
    if (call_->end()) call_->Finish(status_of(error));
  }

 private:
  std::shared_ptr<SmallServerCall> call_;
};

/// What this returns may be over already; it is gRPC's, which calls its OnDone() later.
grpc::ServerUnaryReactor* begin_small_call(const rpc::Frame& request, rpc::Frame& reply,
                                           const RpcServer::Handler& handler,
                                           const RpcOptions& options,
                                           const cluster::Member& caller) {
  const auto call = std::make_shared<SmallServerCall>(reply, options, caller);
  auto answerable = std::make_unique<AnswerableSmallCall>(call);
  call->keep(call);
  try {
    call->take(request);
  } catch (const Error& error) {
    answerable->fail(error);
    return call.get();
  } catch (const std::bad_alloc&) {
    answerable->fail(no_memory());
    return call.get();
  }
  handler(std::move(answerable));
  return call.get();
}

/// Who is at the other end of the connections that gRPC has. It names a connection by the number of
/// its descriptor ("fd:17"); a number is used again only when its connection is over.
class Callers {
 public:
  void add(int descriptor, const cluster::Member& member) {
    const std::lock_guard lock(mutex_);
    members_[fmt::format("fd:{}", descriptor)] = member;
  }

  std::optional<cluster::Member> find(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    const auto entry = members_.find(peer);
    if (entry == members_.end()) return std::nullopt;
    return entry->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, cluster::Member> members_;
};

/// Ends every call with a status, for those that nobody has made.
class RefusedCall final : public grpc::ServerBidiReactor<rpc::Frame, rpc::Frame> {
 public:
  RefusedCall() { Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "nobody's call")); }
  void OnDone() override { delete this; }
};

/// What gRPC calls for every call that comes in.
class FrameService final : public rpc::Frames::CallbackService {
 public:
  FrameService(RpcServer::Handler handler, const RpcOptions& options)
      : handler_(std::move(handler)), options_(options), limit_(options.max_message_bytes) {}

  void allow(std::size_t bytes) { limit_ = bytes; }

  grpc::ServerBidiReactor<rpc::Frame, rpc::Frame>* Call(
      grpc::CallbackServerContext* context) override {
    const auto caller = callers.find(context->peer());
    if (!caller) return new RefusedCall;
    auto call = std::make_shared<ServerCall>(handler_, options(), *caller);
    call->begin(call);
    return call.get();
  }

  grpc::ServerUnaryReactor* SmallCall(grpc::CallbackServerContext* context,
                                      const rpc::Frame* request, rpc::Frame* reply) override {
    const auto caller = callers.find(context->peer());
    if (caller) return begin_small_call(*request, *reply, handler_, options(), *caller);
    grpc::ServerUnaryReactor* refused = context->DefaultReactor();
    refused->Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "nobody's call"));
    return refused;
  }

  Callers callers;

 private:
  RpcOptions options() const {
    RpcOptions now = options_;
    now.max_message_bytes = limit_;
    return now;
  }

  const RpcServer::Handler handler_;
  const RpcOptions options_;
  std::atomic<std::size_t> limit_;  // Of messages, now.
};

// Of what gRPC itself keeps for connections; messages are limited by their receivers.
constexpr std::size_t kQuotaBytes = std::size_t{1} << 30;
constexpr int kMostCallsOfConnection = 256;

std::unique_ptr<grpc::Server> start_grpc(FrameService& service) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kLargestFrame + 1024);
  builder.SetResourceQuota(grpc::ResourceQuota("cohort").Resize(kQuotaBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCallsOfConnection);
  builder.RegisterService(&service);
  return builder.BuildAndStart();
}

}  // namespace

/// gRPC listens nowhere: a thread of ours lets connections in, and gives gRPC those that have proved
/// themselves.
struct RpcServer::State {
  State(const std::string& where, const cluster::Pass& pass, Handler handler,
        const RpcOptions& options)
      : service(std::move(handler), options),
        door(pass.endpoint_of(where), pass, cluster::Purpose::calls),
        address(os::is_unix(where) ? where : door.endpoint()),
        wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        server(start_grpc(service)) {
    if (!wake || !server) fail(ErrorCode::io, "Cannot serve calls on {}.", where);
    thread = std::jthread([this](std::stop_token stop) {
      const std::stop_callback wake_up(stop, [this] { ::eventfd_write(wake.get(), 1); });
      let_in(stop);
    });
  }

  // Milliseconds until the next try, where the process has no descriptor or memory left.
  static constexpr int kPause = 100;

  /// Who comes when there is no memory is dropped, and the next ones are let in.
  void let_in(std::stop_token stop) {
    std::vector<pollfd> sockets;
    while (!stop.stop_requested()) {
      try {
        let_in_who_comes(sockets);
      } catch (const std::bad_alloc&) {
        pollfd woken{wake.get(), POLLIN, 0};
        ::poll(&woken, 1, kPause);
      }
    }
  }

  void let_in_who_comes(std::vector<pollfd>& sockets) {
    sockets.assign({{wake.get(), POLLIN, 0}});
    const int patience = door.add_to(sockets);
    if (::poll(sockets.data(), sockets.size(), door.is_taking() ? patience : kPause) < 0) return;
    door.set_taking(true);
    for (cluster::Doorkeeper::Admitted& admitted : door.look()) {
      failpoint("rpc.before-letting-in");
      service.callers.add(admitted.socket.get(), admitted.member);
      grpc::AddInsecureChannelFromFd(server.get(), admitted.socket.release());
    }
  }

  FrameService service;
  cluster::Doorkeeper door;  // The thread's, but for its endpoint.
  const std::string address;
  UniqueFd wake;  // Readable when the thread shall look at its stop token.
  std::unique_ptr<grpc::Server> server;
  std::jthread thread;  // Last, so that it ends before what it uses goes.
};

RpcServer::RpcServer(const std::string& address, const cluster::Pass& pass, Handler handler,
                     const RpcOptions& options) {
  prepare_grpc();
  state_ = std::make_unique<State>(address == "unix" ? pass.new_address("rpc") : address, pass,
                                   std::move(handler), options);
}

RpcServer::~RpcServer() {
  state_->thread = std::jthread();  // Nobody new from here on.
  // Calls under way are cancelled at once; each finishes itself, which this waits for.
  state_->server->Shutdown(std::chrono::system_clock::now());
  state_->server->Wait();
}

void RpcServer::allow(std::size_t max_message_bytes) {
  state_->service.allow(max_message_bytes);
}

std::string RpcServer::address() const {
  return state_->address;
}

}  // namespace cohort::rpc
