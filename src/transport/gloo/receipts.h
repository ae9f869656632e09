#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/deadline.h"

namespace cohort {

/// Makes it safe to close. libgloo calls a send complete when the kernel has taken it, but drops
/// what the kernel still holds when the connection is closed. So every rank starts a send of one
/// byte to each peer, a *receipt*, which libgloo's thread passes on when the peer starts to receive
/// it; since a connection keeps the order, the receipt proves that all before it was read. The
/// peer's own thread has no part in it.
class Receipts {
 public:
  /// Every rank of the context must make one.
  explicit Receipts(::gloo::transport::Context& context);

  /// Returns when every peer that still answers has read all that was sent to it, or at the
  /// deadline.
  void collect(::gloo::transport::Context& context, Deadline deadline) noexcept;

 private:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  std::byte given_{};
  std::vector<std::byte> taken_;
  std::vector<Buffer> gives_;
};

}  // namespace cohort
