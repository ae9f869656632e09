#include "gossip/boxes/incoming_boxes.h"

namespace cohort {

IncomingBoxes::IncomingBoxes(const std::vector<int>& senders, std::size_t message_bytes) {
  for (const int sender : senders) {
    Slot& slot = slots_[sender];
    slot.memory = PrivateMemory(Box::bytes_needed(message_bytes));
    slot.box = Box(slot.memory.bytes());
  }
}

void IncomingBoxes::put(const RemoteHeader& header, std::unique_ptr<RpcCall>& call) {
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

bool IncomingBoxes::try_put(Box& box, const RemoteHeader& header, RpcCall& call) {
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
  }
  slot.held.reset();
}

}  // namespace cohort
