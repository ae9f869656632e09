#include "transport/gloo/receipts.h"

#include <algorithm>

namespace cohort {

namespace {

// Any number does: that a message has the same one is as good as impossible (see gloo.cc).
constexpr std::uint64_t kSlot = 0x5245434549505453;

}  // namespace

Receipts::Receipts(::gloo::transport::Context& context)
    : taken_(static_cast<std::size_t>(context.size)) {
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    gives_.push_back(context.createUnboundBuffer(&given_, 1));
    gives_.back()->send(peer, kSlot);
  }
}

void Receipts::collect(::gloo::transport::Context& context, Deadline deadline) noexcept {
  std::vector<Buffer> takes;
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    try {
      auto buffer = context.createUnboundBuffer(&taken_[static_cast<std::size_t>(peer)], 1);
      buffer->recv(peer, kSlot);
      takes.push_back(std::move(buffer));
    } catch (const std::exception&) {
      // This peer has failed before.
    }
  }
  for (const Buffer& buffer : takes) {
    try {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
      buffer->waitRecv(std::max(std::chrono::milliseconds(1), rest));
    } catch (const std::exception&) {
      // It went away, or does not answer.
    }
  }
}

}  // namespace cohort
