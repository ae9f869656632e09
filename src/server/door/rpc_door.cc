#include "server/door/server_doors.h"

#include <algorithm>
#include <new>
#include <optional>

#include "base/fail.h"
#include "base/failpoint.h"
#include "server/memory/replica_message.h"
#include "server/shard/shard_rules.h"
#include "server/wire/message_bytes.h"

namespace cohort::server {
namespace {

bool is_replica(std::span<const std::byte> message) {
  try {
    return kind_of(message) == RequestKind::replica;
  } catch (const Error&) {
    return false;
  }
}

/// Whether the desk is no more what it was once such a request has begun to be answered.
bool changes_desk(RequestKind kind) {
  return kind == RequestKind::leave || kind == RequestKind::step_out ||
         kind == RequestKind::give_part || kind == RequestKind::lost_worker;
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

/// Nobody speaks for another: a worker's requests are its own, and what servers say to each other
/// comes from servers, all of the group that the caller has proved to be of.
void check_caller(const cluster::Member& caller, const Request& request) {
  const bool among_servers =
      request.kind == RequestKind::replica || request.kind == RequestKind::lost_worker;
  const bool right =
      among_servers ? caller.role == cluster::Member::Role::server
                    : caller == worker_member(request.header.worker, request.header.generation);
  if (right && caller.generation == request.header.generation) return;
  fail(ErrorCode::invalid, "{} of group {} speaks as worker {} of group {}", name_of(caller),
       caller.generation, request.header.worker, request.header.generation);
}

/// Gives every block a place in `room`. Together they are no larger than what there is.
void make_room(std::vector<RowsWanted>& blocks, const ShardShape& shape, std::vector<float>& room) {
  const std::size_t most = shape.floats();
  std::size_t floats = 0;
  for (const RowsWanted& block : blocks) {
    if (block.table >= shape.tables.size()) {
      fail(ErrorCode::invalid, "rows of table {} are wanted; this server has {} tables",
           block.table, shape.tables.size());
    }
    floats += block.rows.size() * shape.tables[block.table].width;
    if (floats > most) fail(ErrorCode::invalid, "more rows are wanted than this server has");
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
  Caller(std::unique_ptr<rpc::RpcCall> call, std::uint64_t number) : number_(number) {
    calls_.push_back(std::move(call));
  }

  std::uint64_t number() const { return number_; }
  bool is_answered() const { return answered_; }

  void ask_again(std::unique_ptr<rpc::RpcCall> call) {
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
    const std::unique_ptr<rpc::RpcCall> call = std::move(calls_.back());
    calls_.clear();
    if (refusal_) return call->fail(*refusal_);
    const rpc::MessageParts parts = {
        head_, std::as_bytes(std::span(rows)),
        encoded.empty() ? std::as_bytes(std::span(pulled)) : std::span<const std::byte>(encoded)};
    // The parts live in this object, which must stay until gRPC has read them.
    call->reply(parts, [self = shared_from_this()] {});
  }

  const std::uint64_t number_;
  std::vector<std::unique_ptr<rpc::RpcCall>>
      calls_;  // The first has the request, the last is answered.
  bool answered_ = false;
  std::optional<Error> refusal_;
  std::vector<std::byte> head_;
};

RpcDoor::RpcDoor(const ServerOptions& options, const cluster::Pass& pass, ServerDesk& desk,
                 MemoryDoor& memory)
    : desk_(desk),
      memory_(memory),
      come_(static_cast<std::size_t>(options.rules.workers)),
      watches_(static_cast<std::size_t>(options.rules.workers)),
      copies_(static_cast<std::size_t>(options.rules.workers)),
      compressed_(desk.compresses()),
      callers_(static_cast<std::size_t>(options.rules.workers)),
      model_copies_(static_cast<std::size_t>(options.rules.workers)),
      replica_memory_(options.replica_memory),
      generation_(options.generation),
      limit_(largest_message(options)),
      server_(options.address, pass, [this](auto call) { put(std::move(call)); },
              {.max_message_bytes = limit_}) {
  if (desk.has_model()) allow_messages_of_model();
}

RpcDoor::~RpcDoor() = default;

/// What is said of a model, its pushes first, is no larger than twice its floats, beside what is of
/// any size; a row of one float has a number of the same size.
void RpcDoor::allow_messages_of_model() {
  const std::size_t largest = limit_ + 2 * desk_.shape().floats() * sizeof(float);
  server_.allow(std::max(largest, limit_));
}

/// On a thread of gRPC, which wants no exception back.
void RpcDoor::put(std::unique_ptr<rpc::RpcCall> call) {
  try {
    if (is_replica(call->request())) return take_replica_call(*call);
    failpoint("server.before-queueing");
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    waiting_.fetch_add(1, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    return call->fail(no_memory());
  }
  memory_.bell().notify();
}

/// Not on the desk's thread: that one may be waiting for this server's own copy to be kept, by a
/// server that in its turn waits for this one.
void RpcDoor::take_replica_call(rpc::RpcCall& call) {
  try {
    const Request request = read_request(call.request());
    check_caller(call.caller(), request);
    check_generation(request.header, generation_);
    if (replica_memory_.empty()) fail(ErrorCode::invalid, "this server keeps no copies");
    const std::lock_guard lock(replica_mutex_);
    take_replica(request.rest, replica_memory_);
    reply(call, reply_bytes({}));
  } catch (const Error& error) {
    call.fail(error);
  } catch (const std::bad_alloc&) {
    call.fail(no_memory());
  }
}

void RpcDoor::take_all() {
  if (!has_visitors()) return;
  std::deque<std::unique_ptr<rpc::RpcCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
    waiting_.fetch_sub(static_cast<int>(calls.size()), std::memory_order_relaxed);
  }
  for (auto& call : calls) take(std::move(call));
}

/// With the first model come the requests that had to wait for it.
void RpcDoor::take(std::unique_ptr<rpc::RpcCall> call) {
  const bool had_model = desk_.has_model();
  answer(std::move(call));
  if (had_model || !desk_.has_model()) return;
  allow_messages_of_model();
  for (Early& early : std::exchange(early_, {})) answer(std::move(early.call));
}

/// Whatever is wrong with a call is its answer. But where there is no memory left while the desk is at
/// work nobody knows what was done already, and the server ends.
void RpcDoor::answer(std::unique_ptr<rpc::RpcCall> call) {
  bool at_desk = false;
  try {
    Request request = read_request(call->request());
    check(*call, request);
    come_[static_cast<std::size_t>(request.header.worker)] = true;
    if (request.kind == RequestKind::exchange) {
      if (desk_.has_model()) return take_exchange(std::move(call), std::move(request));
      return keep_early(std::move(call), request);
    }
    at_desk = changes_desk(request.kind);
    answer_now(*call, request);
  } catch (const Error& error) {
    if (call) call->fail(error);
  } catch (const std::bad_alloc&) {
    if (!call || at_desk) throw;
    call->fail(no_memory());
  }
}

void RpcDoor::check(const rpc::RpcCall& call, const Request& request) const {
  const int worker = request.header.worker;
  if (worker < 0 || static_cast<std::size_t>(worker) >= come_.size()) {
    fail(ErrorCode::invalid, "a call came from worker {}; the workers are 0 to {}", worker,
         come_.size() - 1);
  }
  check_caller(call.caller(), request);
  desk_.check_generation(request.header);
}

/// All but exchanges.
void RpcDoor::answer_now(rpc::RpcCall& call, const Request& request) {
  const int worker = request.header.worker;
  switch (request.kind) {
    case RequestKind::hello:
      take_hello(worker, hello_from(request.rest));
      return reply(call, reply_bytes({}));
    case RequestKind::leave:
    case RequestKind::step_out:
      model_copies_[static_cast<std::size_t>(worker)].reset();
      desk_.leave(worker, work_left_by(request.kind));
      return reply(call, reply_bytes({}));
    case RequestKind::look:
      return reply(call, reply_bytes(desk_.look()));
    case RequestKind::read:
      return take_read(call, request);
    case RequestKind::read_part:
      return take_read_part(call, request);
    case RequestKind::remember:
      return take_remember(call, worker);
    case RequestKind::recall:
      return take_recall(call, request);
    case RequestKind::initialise:
    case RequestKind::give_part:
      return take_first_model(call, request);
    case RequestKind::lost_worker:
      return take_loss(call, worker);
    case RequestKind::replica:  // See put().
      fail(ErrorCode::corrupt, "a copy of a shard cannot be read");
    case RequestKind::exchange:  // See answer().
      return;
  }
}

void RpcDoor::reply(rpc::RpcCall& call, rpc::Bytes bytes) {
  const auto kept = std::make_shared<const rpc::Bytes>(std::move(bytes));
  call.reply({*kept}, [kept] {});
}

/// What had come before the question counts, whichever way it came.
void RpcDoor::take_loss(rpc::RpcCall& call, int worker) {
  memory_.take_all();
  desk_.leave(worker);
  failpoint("server.before-telling-of-a-loss");
  reply(call, reply_bytes({.newest_push = desk_.newest_push(worker)}));
}

void RpcDoor::take_hello(int worker, const Hello& hello) {
  watches_[static_cast<std::size_t>(worker)] = os::PeerWatch({static_cast<pid_t>(hello.pid)});
  if (hello.floats_number != 0) memory_.greet(worker, hello);
}

int RpcDoor::dead_worker() const {
  for (std::size_t worker = 0; worker < watches_.size(); ++worker) {
    const int number = static_cast<int>(worker);
    if (!desk_.has_left(number) && watches_[worker].is_dead(0)) return number;
  }
  return -1;
}

/// As take_exchange(): one of a worker at a time, or it could have this process keep as many as it
/// likes. One that is made again takes the place of the first, whose connection was lost.
void RpcDoor::keep_early(std::unique_ptr<rpc::RpcCall> call, const Request& request) {
  const auto kept = std::ranges::find(early_, request.header.worker, &Early::worker);
  if (kept == early_.end()) {
    early_.push_back({request.header.worker, request.number, std::move(call)});
  } else if (kept->number == request.number) {
    kept->call = std::move(call);
  } else {
    call->fail(Error(ErrorCode::invalid, "its last request is not answered yet"));
  }
}

/// One request a worker at a time. One with the number of the last is that one again.
void RpcDoor::take_exchange(std::unique_ptr<rpc::RpcCall> call, Request&& request) {
  auto& last = callers_[static_cast<std::size_t>(request.header.worker)];
  if (last && last->number() == request.number) return last->ask_again(std::move(call));
  if (last && !last->is_answered()) {
    return call->fail(Error(ErrorCode::invalid, "its last request is not answered yet"));
  }
  last = std::make_shared<Caller>(std::move(call), request.number);
  try {
    failpoint("server.before-completing");
    complete(request, *last);
  } catch (const Error& error) {
    return last->refuse(error);
  } catch (const std::bad_alloc&) {
    return last->refuse(no_memory());
  }
  try {
    desk_.take(std::move(request), *last);
  } catch (const Error& error) {
    if (!last->is_answered()) last->refuse(error);
  }
}

/// Says where the floats are: what was pushed is in the message, what is pulled stays with the
/// caller until its reply was sent. With compression the worker's copy is kept here from pull to
/// pull.
void RpcDoor::complete(Request& request, Caller& caller) {
  const ShardShape& shape = desk_.shape();
  const RequestHeader& header = request.header;
  make_room(request.rows_wanted, shape, caller.rows);
  if (header.push && compressed_) request.encoded = request.rest;
  if (header.push && !compressed_) request.dense = as_floats(request.rest);
  if (header.pull && compressed_) {
    auto& copy = copies_[static_cast<std::size_t>(header.worker)];
    copy.resize(shape.dense);
    request.pull_into = copy;
    request.pull_encoded = &caller.encoded;
  } else if (header.pull) {
    caller.pulled.resize(shape.dense);
    request.pull_into = caller.pulled;
  }
}

}  // namespace cohort::server
