// Calls between peers: headers, parcels put into a box as the receiver's server does it, pieces of
// work that are said to be done, and the answers to parcels.

#include <array>

#include "base/fail.h"
#include "gossip/boxes/box.h"
#include "gossip/boxes/remote_message.h"
#include "gossip/claims.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

using gossip::RemoteHeader;

constexpr int kWorld = 3;

std::string call_of(const RemoteHeader& header, std::string_view message) {
  return std::string(text_of(gossip::bytes_of(header))).append(message);
}

/// Twice, since the second finds a box that is full.
void put_parcel(const RemoteHeader& header, Bytes message) {
  alignas(64) std::array<std::byte, 256> memory{};
  require(gossip::Box::bytes_needed(64) <= memory.size(), "a box has room for its head");
  const std::span<std::byte> room(memory.data(), gossip::Box::bytes_needed(64));
  gossip::Box box(room);
  const gossip::Parcel parcel{
      .weight = header.weight, .message = message, .age = header.age, .rates = header.rates};
  box.put(parcel, header.when);
  box.put(parcel, header.when);
  const auto taken = box.take();
  require(taken && taken->message().size() == message.size(), "what was put is there");
}

void count_claims(const RemoteHeader& header) {
  alignas(64) std::array<std::byte, 1024> memory{};
  require(gossip::ClaimCounter::bytes_needed(kWorld) <= memory.size(), "a counter has room");
  gossip::ClaimCounter counter(memory, kWorld, {.work = {.next = 3, .parts = 2}, .end_step = 9});
  (void)counter.next(0);
  counter.done(0, {.step = header.step, .part = header.part});
  (void)counter.left();
}

}  // namespace

void gossip(Bytes input) {
  if (input.size() == sizeof(gossip::PutReply)) (void)gossip::read_put_reply(input);
  const RemoteHeader header = gossip::read_header(input);
  if (header.kind == RemoteHeader::Kind::put) {
    put_parcel(header, input.subspan(sizeof header));
  } else {
    count_claims(header);
  }
}

Seeds gossip_seeds() {
  RemoteHeader parcel, done;
  parcel.weight = 0.5;
  parcel.age = 3;
  done.kind = RemoteHeader::Kind::done;
  done.has_done = 1;
  done.step = 1;
  done.part = 1;
  RemoteHeader added = parcel;
  added.when = gossip::WhenFull::add;
  return {call_of(parcel, "message"), call_of(added, "floatsfloats"), call_of(done, "")};
}

}  // namespace cohort::fuzz
