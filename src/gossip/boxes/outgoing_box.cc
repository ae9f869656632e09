#include "gossip/boxes/outgoing_box.h"

#include "base/log.h"

namespace cohort {
namespace {

// A peer answers when the parcel is in its box, which may be a step of its training later; nobody
// waits for it. So a call may take much longer than an answer should.
constexpr int kPatience = 10;

constexpr auto kPingPause = std::chrono::milliseconds(50);

}  // namespace

OutgoingBox::OutgoingBox(const Options& options)
    : options_(options),
      client_(options.address),
      memory_(2 * Box::bytes_needed(options.message_bytes)) {
  const std::size_t size = Box::bytes_needed(options.message_bytes);
  boxes_ = {Box(memory_.bytes().first(size)), Box(memory_.bytes().subspan(size, size))};
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
    const Bytes& answer = call_->wait();
    if (!pinging_) returned_ += read_put_reply(answer).returned;
  } catch (const Error& error) {
    lost_ = true;
    log_warn("rank {} sends no more to rank {}: {}", options_.from, options_.to, error.what());
  }
  call_.reset();
  pinging_ = false;
  travelling_.reset();
}

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

void OutgoingBox::start(const MessageParts& parts) {
  call_ = client_.start(parts, Deadline::in(options_.timeout * kPatience));
}

}  // namespace cohort
