#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport_test_support.h"

namespace cohort::transport::conformance {

/// What the suites that every transport must pass have in common (conformance_test.cc,
/// death_test.cc): messages with known bytes, calls that wait, errors that must name a peer, and
/// the ways to meet, a function each.

/// More than rings and sockets hold. Sanitizers take their time for every byte.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kLarge = 16 << 20;
#else
inline constexpr std::size_t kLarge = 64 << 20;
#endif

using Bytes = std::vector<std::byte>;

/// Bytes that differ between messages and from place to place: a tile of a prime number of bytes,
/// repeated, because to make each of 64 MiB on its own takes a minute under a sanitizer.
inline Bytes pattern(std::size_t size, int seed) {
  constexpr std::size_t kTile = 65521;
  Bytes bytes(size);
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 1;
  for (std::size_t i = 0; i < std::min(size, kTile); ++i) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = static_cast<std::byte>(state >> 24);
  }
  for (std::size_t i = kTile; i < size; i += kTile) {
    std::memcpy(&bytes[i], bytes.data(), std::min(kTile, size - i));
  }
  return bytes;
}

inline void send(Transport& transport, int peer, Tag tag, const Bytes& bytes) {
  transport.wait(*transport.isend(peer, tag, bytes), soon());
}

inline Bytes receive(Transport& transport, int peer, Tag tag, std::size_t size) {
  Bytes bytes(size);
  transport.wait(*transport.irecv(peer, tag, bytes), soon());
  return bytes;
}

/// Both directions at once, the receive started first.
inline Bytes exchange(Transport& transport, int peer, Tag tag, const Bytes& mine) {
  Bytes theirs(mine.size());
  const auto incoming = transport.irecv(peer, tag, theirs);
  const auto outgoing = transport.isend(peer, tag, mine);
  transport.wait(*outgoing, soon());
  transport.wait(*incoming, soon());
  return theirs;
}

/// The Error that `action` ends in; it must name `peer`.
template <class Action>
ErrorCode failure_about(int peer, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.rank(), peer) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr("ank " + std::to_string(peer)));
    return error.code();
  }
  ADD_FAILURE() << "no Error about rank " << peer;
  return ErrorCode::invalid;
}

inline void expect_stays_failed(Transport& transport, int peer) {
  Bytes bytes(8);
  for (int time = 0; time < 2; ++time) {
    failure_about(peer, [&] { receive(transport, peer, 99, 8); });
    failure_about(peer, [&] { send(transport, peer, 99, bytes); });
  }
}

inline ErrorCode failed_receive(Transport& transport, int peer, Deadline deadline) {
  Bytes bytes(8);
  return failure_about(peer, [&] { transport.wait(*transport.irecv(peer, 1, bytes), deadline); });
}

/// Returns when the peer has gone.
inline void wait_until_gone(Transport& transport, int peer) {
  Bytes bytes(1);
  try {
    transport.wait(*transport.irecv(peer, 12345, bytes), soon());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
  }
}

inline std::unique_ptr<Meeting> meet_inproc(int size) {
  return std::make_unique<InprocMeeting>(size);
}

inline std::unique_ptr<Meeting> meet_shm(int size) {
  return std::make_unique<ShmMeeting>(size, ShmOptions());
}

/// Messages are cut into many pieces, and ranks wait for each other all the time.
inline std::unique_ptr<Meeting> meet_shm_with_small_rings(int size) {
  return std::make_unique<ShmMeeting>(size, ShmOptions{.ring_bytes = 4096});
}

inline std::unique_ptr<Meeting> meet_gloo(int size) {
  return std::make_unique<GlooMeeting>(size);
}

/// Two ranks on each host, or every other one on the same.
inline std::unique_ptr<Meeting> meet_composed_pairs(int size) {
  return std::make_unique<ComposedMeeting>(size, [](int rank) { return rank / 2; });
}
inline std::unique_ptr<Meeting> meet_composed_in_turn(int size) {
  return std::make_unique<ComposedMeeting>(size, [](int rank) { return rank % 2; });
}

inline std::string group_name(const ::testing::TestParamInfo<TestGroup>& test) {
  return test.param.name;
}

}  // namespace cohort::transport::conformance
