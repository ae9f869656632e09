#include "gossip/boxes/remote_box.h"

#include <new>

#include "base/log.h"

namespace cohort::gossip {
namespace {

// A peer answers when the parcel is in its box, which may be a step of its training later; nobody
// waits for it. So a call may take much longer than an answer should.
constexpr int kPatience = 10;

// Between two pings of a peer to which nothing is on its way.
constexpr auto kPingPause = std::chrono::milliseconds(50);

}  // namespace

OutgoingBox::OutgoingBox(const Options& options)
    : options_(options),
      client_(options.address, options.pass, member_of(options.from)),
      memory_(2 * Box::bytes_needed(options.message_bytes)) {
  const std::size_t size = Box::bytes_needed(options.message_bytes);
  boxes_ = {Box(memory_.bytes().first(size)), Box(memory_.bytes().subspan(size, size))};
  client_.connect(Deadline::in(options.timeout));  // No later call waits for it.
}

bool OutgoingBox::put(const Parcel& parcel, WhenFull when) {
  when_ = when;
  advance();
  if (lost_) return false;
  const PutResult result = waiting().put(parcel, when);
  returned_ += result.returned;
  advance();
  return result.is_there;
}

bool OutgoingBox::empty() {
  advance();
  return !lost_ && waiting().empty();
}

bool OutgoingBox::idle() {
  advance();
  return lost_ || ((call_ == nullptr || pinging_) && waiting().empty());
}

void OutgoingBox::ping() {
  advance();
  if (call_ || lost_ || Clock::now() < next_ping_) return;
  next_ping_ = Clock::now() + kPingPause;
  header_ = {.from = options_.from, .kind = RemoteHeader::Kind::ping};
  pinging_ = true;
  start({bytes_of(header_)});
}

void OutgoingBox::advance() {
  if (call_ && call_->done()) finish_call();
  if (!call_ && !lost_) start_call();
}

void OutgoingBox::finish_call() {
  try {
    const rpc::Bytes& answer = call_->wait();
    if (!pinging_) take_answer(read_put_reply(answer));
  } catch (const Error& error) {
    lost_ = true;
    log_warn("rank {} sends no more to rank {}: {}", options_.from, options_.to, error.what());
  }
  call_.reset();
  pinging_ = false;
  travelling_.reset();
}

/// No more comes back than lay there.
void OutgoingBox::take_answer(const PutReply& answer) {
  if (answer.returned > there_) {
    fail(ErrorCode::corrupt, "it gives back a weight of {}; it had got {}", answer.returned,
         there_);
  }
  returned_ += answer.returned;
  there_ = header_.weight + (header_.when == WhenFull::add ? there_ : 0);
}

/// Turns the two boxes over: what waited travels, the other one, which has arrived, waits.
void OutgoingBox::start_call() {
  travelling_ = waiting().take();
  if (!travelling_) return;
  waiting_ = 1 - waiting_;
  header_ = {.from = options_.from,
             .weight = travelling_->weight(),
             .kind = RemoteHeader::Kind::put,
             .when = when_,
             .age = travelling_->age(),
             .rates = travelling_->rates()};
  start({bytes_of(header_), travelling_->message()});
}

void OutgoingBox::start(const rpc::MessageParts& parts) {
  call_ = client_.start(parts, Deadline::in(options_.timeout * kPatience));
}

IncomingBoxes::IncomingBoxes(const std::vector<int>& senders, std::size_t message_bytes) {
  for (const int sender : senders) {
    Slot& slot = slots_[sender];
    slot.memory = os::PrivateMemory(Box::bytes_needed(message_bytes));
    slot.box = Box(slot.memory.bytes());
  }
}

void IncomingBoxes::put(const RemoteHeader& header, std::unique_ptr<rpc::RpcCall>& call) {
  const auto found = slots_.find(header.from);
  if (found == slots_.end()) {
    fail(ErrorCode::corrupt, "rank {} does not send to this rank in this topology", header.from);
  }
  Slot& slot = found->second;
  if (try_put(slot.box, header, *call)) return;
  const std::lock_guard lock(mutex_);
  slot.held = std::move(call);
}

std::optional<Box::Taken> IncomingBoxes::take(int sender) {
  Slot& slot = slots_.at(sender);
  auto taken = slot.box.take();
  if (taken) return taken;
  put_held(slot);
  return slot.box.take();
}

/// Answers the call if the parcel is in the box now.
bool IncomingBoxes::try_put(Box& box, const RemoteHeader& header, rpc::RpcCall& call) {
  const auto message = call.request().subspan(sizeof(RemoteHeader));
  const Parcel parcel{
      .weight = header.weight, .message = message, .age = header.age, .rates = header.rates};
  const PutResult result = box.put(parcel, header.when);
  if (!result) return false;
  const auto reply = std::make_shared<const PutReply>(PutReply{.returned = result.returned});
  call.reply({bytes_of(*reply)}, [reply] {});
  return true;
}

void IncomingBoxes::put_held(Slot& slot) {
  const std::lock_guard lock(mutex_);
  if (!slot.held) return;
  try {
    if (!try_put(slot.box, read_header(slot.held->request()), *slot.held)) return;
  } catch (const Error& error) {
    slot.held->fail(error);
  } catch (const std::bad_alloc&) {
    slot.held->fail(Error(ErrorCode::no_space, "the receiver has no memory left for a parcel"));
  }
  slot.held.reset();
}

}  // namespace cohort::gossip
