#include "server/door/rpc_door.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "base/failpoint.h"
#include "server/door/request_check.h"
#include "server/wire/link_memory.h"
#include "server/wire/message_bytes.h"
#include "server/wire/replica_message.h"

namespace cohort {
namespace {

Bytes reply_of(const ReplyHeader& header) {
  Bytes bytes(kReplyBytes);
  bytes.resize(begin_reply(bytes, header, 0, 0).size());
  return bytes;
}

void reply_with(RpcCall& call, const ReplyHeader& header) {
  const auto bytes = std::make_shared<const Bytes>(reply_of(header));
  call.reply({*bytes}, [bytes] {});
}

bool is_replica(std::span<const std::byte> message) {
  try {
    return kind_of(message) == WireKind::replica;
  } catch (const Error&) {
    return false;
  }
}

/// No push, and no copy of a shard, is larger than the memory it goes to.
std::size_t largest_message(const ServerOptions& options) {
  return std::max({options.message_bytes, options.memory.size(), options.replica_memory.size()});
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
      watches_(static_cast<std::size_t>(options.rules.workers)),
      copies_(static_cast<std::size_t>(options.rules.workers)),
      compressed_(desk.compresses()),
      callers_(static_cast<std::size_t>(options.rules.workers)),
      model_copies_(static_cast<std::size_t>(options.rules.workers)),
      replica_memory_(options.replica_memory),
      epoch_(options.epoch),
      server_(options.address, [this](auto call) { put(std::move(call)); },
              {.max_message_bytes = largest_message(options)}) {}

RpcDoor::~RpcDoor() = default;

/// On a thread of gRPC.
void RpcDoor::put(std::unique_ptr<RpcCall> call) {
  if (is_replica(call->request())) return take_replica_call(*call);
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    waiting_.fetch_add(1, std::memory_order_release);
  }
  memory_.bell().notify();
}

/// Not on the desk's thread: that one may be waiting for this server's own copy to be kept, by a
/// server that in its turn waits for this one.
void RpcDoor::take_replica_call(RpcCall& call) {
  try {
    const WireRequest wire = read_request(call.request());
    check_epoch(wire.header, epoch_);
    if (replica_memory_.empty()) fail(ErrorCode::invalid, "this server keeps no copies");
    const std::lock_guard lock(replica_mutex_);
    take_replica(wire.rest, replica_memory_);
    reply_with(call, {});
  } catch (const Error& error) {
    call.fail(error);
  }
}

void RpcDoor::take_all() {
  if (!has_visitors()) return;
  std::deque<std::unique_ptr<RpcCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
    waiting_.fetch_sub(static_cast<int>(calls.size()), std::memory_order_relaxed);
  }
  for (auto& call : calls) take(std::move(call));
}

void RpcDoor::take(std::unique_ptr<RpcCall> call) {
  try {
    const WireRequest wire = read_request(call->request());
    const int worker = wire.header.worker;
    if (worker < 0 || static_cast<std::size_t>(worker) >= come_.size()) {
      fail(ErrorCode::invalid, "a call came from worker {}; the workers are 0 to {}", worker,
           come_.size() - 1);
    }
    desk_.check_epoch(wire.header);
    come_[static_cast<std::size_t>(worker)] = true;
    switch (wire.kind) {
      case WireKind::hello:
        take_hello(worker, hello_from(wire.rest));
        return reply_with(*call, {});
      case WireKind::leave:
        model_copies_[static_cast<std::size_t>(worker)].reset();
        desk_.leave(worker, wire.header.returns ? LeftWork::kept : LeftWork::handed_out);
        return reply_with(*call, {});
      case WireKind::look:
        return reply_with(*call, desk_.look());
      case WireKind::read:
        return take_read(*call, wire);
      case WireKind::read_part:
        return take_read_part(*call, wire);
      case WireKind::remember:
        return take_remember(*call, worker);
      case WireKind::recall:
        return take_recall(*call, wire);
      case WireKind::initialise:
      case WireKind::give_part:
        take_first_model(*call, wire);
        if (!desk_.has_model()) return;
        for (auto& early : std::exchange(early_, {})) take(std::move(early));
        return;
      case WireKind::replica:  // See put().
        fail(ErrorCode::corrupt, "a copy of a shard cannot be read");
      case WireKind::lost_worker:
        return take_loss(*call, worker);
      case WireKind::exchange:
        if (desk_.has_model()) return take_exchange(std::move(call), wire);
        early_.push_back(std::move(call));
        return;
    }
  } catch (const Error& error) {
    if (call) call->fail(error);
  }
}

/// What had come before the question counts, whichever way it came.
void RpcDoor::take_loss(RpcCall& call, int worker) {
  memory_.take_all();
  desk_.leave(worker);
  failpoint("server.before-telling-of-a-loss");
  reply_with(call, {.newest_push = desk_.newest_push(worker)});
}

void RpcDoor::take_hello(int worker, const Hello& hello) {
  watches_[static_cast<std::size_t>(worker)] = PeerWatch({static_cast<pid_t>(hello.pid)});
  if (!hello.floats_path.empty()) memory_.greet(worker, hello);
  model_path_.clear();  // The same path may mean other memory by now.
}

int RpcDoor::dead_worker() const {
  for (std::size_t worker = 0; worker < watches_.size(); ++worker) {
    const int number = static_cast<int>(worker);
    if (!desk_.has_left(number) && watches_[worker].is_dead(0)) return number;
  }
  return -1;
}

void RpcDoor::take_first_model(RpcCall& call, const WireRequest& wire) {
  if (wire.kind == WireKind::initialise) {
    MessageReader reader(wire.rest);
    const auto total = reader.take<std::uint64_t>();
    desk_.expect_model(wire.header.worker, take_model_head(reader), total);
  } else {
    desk_.take_part(wire.header.worker, read_model_part(wire.rest));
  }
  reply_with(call, {});
}

/// The desk's thread only copies the floats; they travel, in parts, while it goes on.
void RpcDoor::take_read(RpcCall& call, const WireRequest& wire) {
  std::span<float> floats = memory_for_model(wire.rest);
  auto& copy = model_copies_[static_cast<std::size_t>(wire.header.worker)];
  copy.reset();
  if (floats.empty()) {
    copy = new_copy();
    copy->resize(desk_.look().model_floats);
    floats = *copy;
  }
  const ModelMessage model = desk_.read(floats);
  Bytes bytes = reply_of({.version = model.version});
  write_model(bytes, model);
  const auto reply = std::make_shared<const Bytes>(std::move(bytes));
  call.reply({*reply}, [reply] {});
}

void RpcDoor::take_read_part(RpcCall& call, const WireRequest& wire) {
  const ModelPart part = read_model_part(wire.rest);
  auto& copy = model_copies_[static_cast<std::size_t>(wire.header.worker)];
  if (!copy || part.begin > copy->size() || part.count > copy->size() - part.begin) {
    fail(ErrorCode::invalid,
         "worker {} wants {} floats of a model from number {} on; it reads a model of {}",
         wire.header.worker, part.count, part.begin, copy ? copy->size() : 0);
  }
  const auto head = std::make_shared<const Bytes>(reply_of({}));
  const auto floats = std::span<const float>(*copy).subspan(part.begin, part.count);
  const bool last = part.begin + part.count == copy->size();
  const std::shared_ptr<Floats> kept = copy;
  if (last) spare_copy_ = std::move(copy);
  call.reply({*head, std::as_bytes(floats)}, [head, kept] {});
}

void RpcDoor::take_remember(RpcCall& call, int worker) {
  Bytes bytes = reply_of({});
  write_codec_memory(bytes, desk_.codec_memory(worker));
  const auto reply = std::make_shared<const Bytes>(std::move(bytes));
  call.reply({*reply}, [reply] {});
}

void RpcDoor::take_recall(RpcCall& call, const WireRequest& wire) {
  MessageReader reader(wire.rest);
  const CodecMemory memory = take_codec_memory(reader);
  const auto has = reader.take_all<float>(reader.rest().size() / sizeof(float));
  auto& copy = copies_[static_cast<std::size_t>(wire.header.worker)];
  if (!has.empty() && (!compressed_ || has.size() != desk_.shape().dense)) {
    fail(ErrorCode::invalid, "worker {} says that it has {} parameters of this server's {}",
         wire.header.worker, has.size(), desk_.shape().dense);
  }
  desk_.recall_codec(wire.header.worker, memory);
  if (!has.empty()) copy.assign(has.begin(), has.end());
  reply_with(call, {});
}

/// Memory that nobody reads any more, gRPC included.
std::shared_ptr<RpcDoor::Floats> RpcDoor::new_copy() {
  const bool is_free = spare_copy_ && spare_copy_.use_count() == 1;
  return is_free ? std::move(spare_copy_) : std::make_shared<Floats>();
}

/// Empty where no memory is named.
std::span<float> RpcDoor::memory_for_model(std::span<const std::byte> path) {
  if (path.empty()) return {};
  const std::string name(reinterpret_cast<const char*>(path.data()), path.size());
  if (name != model_path_) {
    model_memory_ = SharedMemory::attach(name);
    model_path_ = name;
  }
  return {reinterpret_cast<float*>(model_memory_.data()), model_memory_.size() / sizeof(float)};
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
  request.pieces = wire.pieces;
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
