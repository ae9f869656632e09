#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/fail.h"
#include "gossip/boxes/box.h"

namespace cohort {

/// What workers that share no memory say to each other: a call begins with this header. A put is
/// followed by the message and answered by a PutReply; a claim is answered by a ClaimReply and
/// numbers of what is left to do; all others are answered by nothing. A ping only asks whether
/// there is anybody. Numbers are little-endian, as they are in memory.
struct RemoteHeader {
  enum class Kind : std::uint8_t { put, claim, done, stop, ping };
  static constexpr std::uint32_t kMagic = 0x70736f67;

  std::uint32_t magic = kMagic;
  std::int32_t from = 0;
  double weight = 0;
  Kind kind = Kind::put;
  WhenFull when = WhenFull::replace;
  std::uint8_t has_done = 0;  ///< To who counts: this worker has done the piece below.
  std::uint8_t zero = 0;
  std::int32_t part = 0;
  std::int64_t step = 0;
  double age = 0;
  double rates = 0;
};
static_assert(sizeof(RemoteHeader) == 48);

struct ClaimReply {
  enum class Kind : std::uint32_t { work, end, stopped };

  std::int64_t step = 0;
  std::int32_t part = 0;
  Kind kind = Kind::end;
};
static_assert(sizeof(ClaimReply) == 16);

struct PutReply {
  double returned = 0;  ///< See PutResult.
};

/// Throws Error(corrupt) for bytes that are no reply to a put.
inline PutReply read_put_reply(std::span<const std::byte> bytes) {
  PutReply reply;
  if (bytes.size() == sizeof(reply)) std::memcpy(&reply, bytes.data(), sizeof(reply));
  if (bytes.size() != sizeof(reply) || !std::isfinite(reply.returned) || reply.returned < 0) {
    fail(ErrorCode::corrupt, "{} bytes are not an answer to a parcel", bytes.size());
  }
  return reply;
}

/// Throws Error(corrupt) for bytes that do not begin with a header.
inline RemoteHeader read_header(std::span<const std::byte> request) {
  RemoteHeader header;
  if (request.size() >= sizeof(header)) std::memcpy(&header, request.data(), sizeof(header));
  if (request.size() < sizeof(header) || header.magic != RemoteHeader::kMagic ||
      header.kind > RemoteHeader::Kind::ping || header.when > WhenFull::refuse) {
    fail(ErrorCode::corrupt, "a call of {} bytes does not begin as one of gossip's",
         request.size());
  }
  return header;
}

/// Throws Error(corrupt) for bytes that do not begin as a reply to a claim.
inline ClaimReply read_claim_reply(std::span<const std::byte> bytes) {
  ClaimReply reply;
  if (bytes.size() >= sizeof(reply)) std::memcpy(&reply, bytes.data(), sizeof(reply));
  if (bytes.size() < sizeof(reply) || reply.kind > ClaimReply::Kind::stopped) {
    fail(ErrorCode::corrupt, "{} bytes are not an answer to a claim", bytes.size());
  }
  return reply;
}

template <class Plain>
std::span<const std::byte> bytes_of(const Plain& plain) {
  return std::as_bytes(std::span<const Plain, 1>(&plain, 1));
}

}  // namespace cohort
