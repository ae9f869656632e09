#include "transport/gloo/peer_alarms.h"

namespace cohort {
namespace {

// Any number does: that a message has the same one is as good as impossible (see gloo.cc).
constexpr std::uint64_t kAlarmSlot = 0x50454552414c524d;

}  // namespace

PeerAlarms::PeerAlarms(::gloo::transport::Context& context) {
  for (int peer = 0; peer < context.size; ++peer) {
    receives_.emplace_back();
    if (peer == context.rank) continue;
    receives_.back() = context.createUnboundBuffer(&nothing_, 1);
    receives_.back()->recv(peer, kAlarmSlot);
  }
}

void PeerAlarms::check(int peer) {
  ::gloo::transport::UnboundBuffer& receive = *receives_[static_cast<std::size_t>(peer)];
  receive.abortWaitRecv();  // So the wait looks for an exception and returns.
  receive.waitRecv();
}

}  // namespace cohort
