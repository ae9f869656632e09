#pragma once

#include <cstdint>

namespace cohort {

/// Bytes that messages had, headers of our own included; what a protocol below adds to them is not
/// counted. Whoever sends or receives counts its own, from its beginning on, and whoever has
/// several such parts adds them up.
struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t left_out =
      0;  ///< Messages that arrived and could not be used, see gossip/screen.h.

  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    left_out += other.left_out;
    return *this;
  }

  friend Traffic operator+(Traffic one, const Traffic& other) { return one += other; }
};

}  // namespace cohort
