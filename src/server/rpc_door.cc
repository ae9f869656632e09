#include "server/rpc_door.h"

#include <optional>

#include "base/fail.h"

namespace cohort {
namespace {

void reply_nothing(RpcCall& call) {
  static const std::vector<std::byte> nothing = [] {
    std::vector<std::byte> bytes(kReplyBytes);
    bytes.resize(begin_reply(bytes, {}, 0, 0).size());
    return bytes;
  }();
  call.reply({nothing});
}

std::span<const float> as_floats(std::span<const std::byte> bytes) {
  if (bytes.size() % sizeof(float) != 0 ||
      reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) != 0) {
    fail(ErrorCode::corrupt, "pushed bytes are not floats");
  }
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

/// Gives every block a place in `room`.
void make_room(std::vector<RowsWanted>& blocks, const ShardShape& shape, std::vector<float>& room) {
  constexpr std::size_t kMost = RpcOptions().max_message_bytes / sizeof(float);
  std::size_t floats = 0;
  for (const RowsWanted& block : blocks) {
    if (block.table >= shape.tables.size()) {
      fail(ErrorCode::invalid, "rows of table {} are wanted; this server has {} tables",
           block.table, shape.tables.size());
    }
    floats += block.rows.size() * shape.tables[block.table].width;
    if (floats > kMost) {
      fail(ErrorCode::invalid, "more rows are wanted than a message can bring");
    }
  }
  room.resize(floats);
  float* next = room.data();
  for (RowsWanted& block : blocks) {
    block.values = {next, block.rows.size() * shape.tables[block.table].width};
    next += block.values.size();
  }
}

}  // namespace

/// A worker's request and its reply, both kept until the worker makes its next request: one that it
/// makes again, because its connection was lost, gets the same reply and does nothing twice.
class RpcDoor::Caller : public Visit, public std::enable_shared_from_this<Caller> {
 public:
  Caller(std::unique_ptr<RpcCall> call, std::uint64_t number) : number_(number) {
    calls_.push_back(std::move(call));
  }

  std::uint64_t number() const { return number_; }
  bool is_answered() const { return answered_; }

  void ask_again(std::unique_ptr<RpcCall> call) {
    calls_.push_back(std::move(call));
    if (answered_) send();
  }

  void answer(const ReplyHeader& reply) override {
    head_.resize(kReplyBytes);
    head_.resize(begin_reply(head_, reply, 0, rows.size()).size());
    answered_ = true;
    send();
  }

  void refuse(const Error& error) override {
    refusal_ = error;
    answered_ = true;
    send();
  }

  std::vector<float> rows;
  std::vector<float> pulled;
  std::vector<std::byte> encoded;

 private:
  void send() {
    const std::unique_ptr<RpcCall> call = std::move(calls_.back());
    calls_.clear();
    if (refusal_) return call->fail(*refusal_);
    const MessageParts parts = {
        head_, std::as_bytes(std::span(rows)),
        encoded.empty() ? std::as_bytes(std::span(pulled)) : std::span<const std::byte>(encoded)};
    // The parts live in this object, which must stay until gRPC has read them.
    call->reply(parts, [self = shared_from_this()] {});
  }

  const std::uint64_t number_;
  std::vector<std::unique_ptr<RpcCall>> calls_;  // The first has the request, the last is answered.
  bool answered_ = false;
  std::optional<Error> refusal_;
  std::vector<std::byte> head_;
};

RpcDoor::RpcDoor(const ServerOptions& options, ServerDesk& desk, MemoryDoor& memory)
    : desk_(desk),
      memory_(memory),
      come_(static_cast<std::size_t>(options.rules.workers)),
      copies_(static_cast<std::size_t>(options.rules.workers)),
      compressed_(desk.compresses()),
      callers_(static_cast<std::size_t>(options.rules.workers)),
      server_(options.address, [this](auto call) { put(std::move(call)); }) {}

RpcDoor::~RpcDoor() = default;

void RpcDoor::put(std::unique_ptr<RpcCall> call) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    waiting_.fetch_add(1, std::memory_order_release);
  }
  memory_.bell().notify();
}

void RpcDoor::take_all() {
  std::deque<std::unique_ptr<RpcCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
    waiting_.fetch_sub(static_cast<int>(calls.size()), std::memory_order_relaxed);
  }
  for (auto& call : calls) take(std::move(call));
}

void RpcDoor::take(std::unique_ptr<RpcCall> call) {
  RpcCall* const answering = call.get();
  try {
    const WireRequest wire = read_request(answering->request());
    const int worker = wire.header.worker;
    if (worker < 0 || static_cast<std::size_t>(worker) >= come_.size()) {
      fail(ErrorCode::invalid, "a call came from worker {}; the workers are 0 to {}", worker,
           come_.size() - 1);
    }
    come_[static_cast<std::size_t>(worker)] = true;
    if (wire.kind == WireKind::hello) {
      memory_.greet(worker, hello_from(wire.rest));
    } else if (wire.kind == WireKind::leave) {
      desk_.leave(worker);
    } else if (wire.kind == WireKind::initialise) {
      const FirstModel model = read_first_model(wire.rest);
      desk_.initialise(model.shape, model.dense, model.tables);
    } else if (!desk_.has_model()) {
      early_.push_back(std::move(call));
      return;
    } else {
      return take_exchange(std::move(call), wire);
    }
    reply_nothing(*answering);
    if (wire.kind != WireKind::initialise) return;
    for (auto& early : std::exchange(early_, {})) take(std::move(early));
  } catch (const Error& error) {
    if (call) call->fail(error);
  }
}

void RpcDoor::take_exchange(std::unique_ptr<RpcCall> call, const WireRequest& wire) {
  auto& last = callers_[static_cast<std::size_t>(wire.header.worker)];
  if (last && last->number() == wire.number) return last->ask_again(std::move(call));
  if (last && !last->is_answered()) {
    return call->fail(Error(ErrorCode::invalid, "its last request is not answered yet"));
  }
  last = std::make_shared<Caller>(std::move(call), wire.number);
  Request request;
  try {
    request = request_of(wire, *last);
  } catch (const Error& error) {
    return last->refuse(error);
  }
  desk_.take(std::move(request), *last);
}

Request RpcDoor::request_of(const WireRequest& wire, Caller& caller) {
  const ShardShape& shape = desk_.shape();
  Request request;
  request.header = wire.header;
  request.rows = wire.rows;
  request.rows_wanted = wire.wanted;
  make_room(request.rows_wanted, shape, caller.rows);
  if (wire.header.push && compressed_) request.encoded = wire.rest;
  if (wire.header.push && !compressed_) request.dense = as_floats(wire.rest);
  if (wire.header.pull && compressed_) {
    auto& copy = copies_[static_cast<std::size_t>(wire.header.worker)];
    copy.resize(shape.dense);
    request.pull_into = copy;
    request.pull_encoded = &caller.encoded;
  } else if (wire.header.pull) {
    caller.pulled.resize(shape.dense);
    request.pull_into = caller.pulled;
  }
  return request;
}

}  // namespace cohort
