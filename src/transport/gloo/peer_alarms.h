#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace cohort {

/// Tells whether the connection to a peer has failed, without waiting. For every peer there is a
/// receive of a byte that never comes: libgloo ends it with an exception when the connection fails.
class PeerAlarms {
 public:
  explicit PeerAlarms(::gloo::transport::Context& context);

  /// Throws what libgloo says where the connection to `peer` has failed.
  void check(int peer);

 private:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  std::byte nothing_{};
  std::vector<Buffer> receives_;  // By peer; none for this rank.
};

}  // namespace cohort
