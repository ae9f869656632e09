#include "rpc/small_server_call.h"

#include <atomic>
#include <utility>

#include "base/fail.h"
#include "rpc/call_status.h"
#include "rpc/frame_stream.h"

namespace cohort {
namespace {

/// One call as gRPC drives it, from construction to OnDone(), until which it keeps itself alive. It
/// is finished once, by whoever is the first to end it.
class SmallServerCall final : public grpc::ServerUnaryReactor {
 public:
  SmallServerCall(rpc::Frame& reply, const RpcOptions& options)
      : reply_(reply), reader_(options.max_message_bytes) {}

  void keep(std::shared_ptr<SmallServerCall> self) { self_ = std::move(self); }
  void take(const rpc::Frame& request) { reader_.take_whole(request); }
  std::span<const std::byte> request() const { return reader_.message(); }

  /// False when the call is over already.
  bool end() { return !over_.exchange(true); }

  void reply(const MessageParts& parts) {
    FrameWriter writer(parts, kLargestFrame);
    if (writer.total() > kLargestFrame) {
      const auto text =
          fmt::format("A reply of {} bytes is too large for a call that was made for a small one.",
                      writer.total());
      return Finish(status_of(Error(ErrorCode::invalid, text)));
    }
    writer.fill(reply_);
    Finish(grpc::Status::OK);
  }

  void OnCancel() override {
    if (end()) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { const auto self = std::move(self_); }

 private:
  std::shared_ptr<SmallServerCall> self_;
  rpc::Frame& reply_;
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

  /// The parts are copied, so they are needed no longer.
  void reply(const MessageParts& parts, std::function<void()> sent) override {
    if (call_->end()) call_->reply(parts);
    if (sent) sent();
  }

  void fail(const Error& error) override {
    if (call_->end()) call_->Finish(status_of(error));
  }

 private:
  std::shared_ptr<SmallServerCall> call_;
};

}  // namespace

grpc::ServerUnaryReactor* begin_small_call(const rpc::Frame& request, rpc::Frame& reply,
                                           const RpcServer::Handler& handler,
                                           const RpcOptions& options) {
  const auto call = std::make_shared<SmallServerCall>(reply, options);
  call->keep(call);
  auto answerable = std::make_unique<AnswerableSmallCall>(call);
  try {
    call->take(request);
  } catch (const Error& error) {
    answerable->fail(error);
    return call.get();
  }
  handler(std::move(answerable));
  return call.get();
}

}  // namespace cohort
