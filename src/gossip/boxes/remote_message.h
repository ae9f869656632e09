#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/fail.h"
#include "cluster/pass.h"
#include "cluster/work_board.h"
#include "gossip/boxes/box.h"

namespace cohort::gossip {

/// What workers that share no memory say to each other. Every call begins with a RemoteHeader of 48
/// bytes; numbers are little-endian, as they are in memory.
///
///   kind    who is called    behind the header    the answer
///   put     the receiver     the message          PutReply, once the parcel is in the box
///   claim   rank 0           –                    ClaimReply, then what is left to do as i64:
///                                                 the next number, those to do again
///   done    rank 0           –                    empty
///   stop    rank 0           –                    empty
///   ping    any target       –                    empty: there is somebody
///
/// A claim, a done or a stop may say which piece its sender has done (has_done, step, part): a done
/// whose answer was never seen is said again by the next call, and counts once.
struct RemoteHeader {
  enum class Kind : std::uint8_t { put, claim, done, stop, ping };
  static constexpr std::uint32_t kMagic = 0x70736f67;

  std::uint32_t magic = kMagic;
  std::int32_t from = 0;
  double weight = 0;
  Kind kind = Kind::put;
  WhenFull when = WhenFull::replace;
  std::uint8_t has_done = 0;  ///< To who counts: this worker has done the piece below.
  std::uint8_t zero = 0;      ///< Fills up.
  std::int32_t part = 0;
  std::int64_t step = 0;
  double age = 0;
  double rates = 0;
};
static_assert(sizeof(RemoteHeader) == 48);

/// The answer to a claim; step and part only where there is work.
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

/// Who a rank is when it calls another. Addresses are of one group, so its number says enough.
inline cluster::Member member_of(int rank) {
  return {.role = cluster::Member::Role::worker, .number = rank};
}

/// Throws Error(corrupt) for bytes that do not begin with a header, or whose numbers are none that a
/// model may be weighed with.
inline RemoteHeader read_header(std::span<const std::byte> request) {
  RemoteHeader header;
  if (request.size() >= sizeof(header)) std::memcpy(&header, request.data(), sizeof(header));
  if (request.size() < sizeof(header) || header.magic != RemoteHeader::kMagic ||
      header.kind > RemoteHeader::Kind::ping || header.when > WhenFull::refuse) {
    fail(ErrorCode::corrupt, "a call of {} bytes does not begin as one of gossip's",
         request.size());
  }
  if (!std::isfinite(header.weight) || !std::isfinite(header.age) || !std::isfinite(header.rates) ||
      header.weight < 0) {
    fail(ErrorCode::corrupt, "rank {} sends a parcel of weight {}", header.from, header.weight);
  }
  return header;
}

/// The whole answer to a claim.
struct ClaimAnswer {
  ClaimReply reply;
  cluster::WorkLeft left;
};

/// `parts` are those of the job. Throws Error(corrupt) for bytes that are no such answer, or speak
/// of a piece that cannot be.
ClaimAnswer read_claim_answer(std::span<const std::byte> bytes, std::int64_t parts);

/// The bytes of a header or reply where it stands.
template <class Plain>
std::span<const std::byte> bytes_of(const Plain& plain) {
  return std::as_bytes(std::span<const Plain, 1>(&plain, 1));
}

}  // namespace cohort::gossip
