#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/shard/shard.h"
#include "server/wire/request.h"

namespace cohort {

/// Requests and replies as bytes: what a worker's shared memory holds beside the dense floats, and
/// what travels by gRPC. Both sides run the same build, so numbers are written as they are in
/// memory; a *mark* in front tells another build apart. Parsing checks every length and throws
/// Error(corrupt).
///
///   request   mark | kind, counts, number | RequestHeader | pieces | rows pushed … | rows wanted …
///   by gRPC   … | dense floats or an encoded message
///   reply     mark | error code, lengths | ReplyHeader | wanted rows' floats, or the error's text
///   by gRPC   … | dense floats or an encoded message

enum class WireKind : std::uint32_t {
  exchange,
  leave,
  hello,       ///< Followed by a Hello.
  look,        ///< Is there a model, and how large?
  initialise,  ///< Followed by the number of floats that come, and a ModelMessage without.
  read,        ///< The model, as a ModelMessage; followed by where its floats go, or nothing.
  replica,     ///< From another server, followed by a ReplicaMessage.
  give_part,   ///< Followed by a ModelPart of the first model, with its floats.
  read_part,   ///< Followed by a ModelPart of the model that was read; the reply has its floats.
  remember,    ///< The reply has what the server's codec for this worker remembers (link_memory.h).
  recall,      ///< Followed by such, and by the parameters that the worker has, or nothing.
  lost_worker,  ///< From server 0: the worker is gone. What is the newest push that has come of it?
};

/// What a request begins with.
struct WireHead {
  WireKind kind = WireKind::exchange;
  std::uint64_t number = 0;  ///< The same in a request that is made again; otherwise never.
  RequestHeader header = {};
};

/// A request taken apart; spans are views of the bytes.
struct WireRequest : WireHead {
  std::vector<Claim> pieces;
  std::vector<RowsPushed> rows;
  std::vector<RowsWanted> wanted;  ///< Without `values`.
  std::vector<std::uint32_t> wanted_widths;
  std::span<const std::byte> rest;  ///< What follows: dense floats, or an encoded message.
};

/// Appends the request to `bytes`, but for the rest.
void write_request(std::vector<std::byte>& bytes, const WireHead& head,
                   std::span<const RowsPushed> rows, std::span<const RowsWanted> wanted,
                   std::span<const Claim> pieces = {});
WireRequest read_request(std::span<const std::byte> bytes);

/// The kind alone. Throws Error(corrupt) where it cannot be read.
WireKind kind_of(std::span<const std::byte> request);

/// Floats that answer all rows wanted.
std::size_t wanted_floats(const WireRequest& request);

struct WireReply {
  ReplyHeader header;
  std::uint64_t pulled_bytes = 0;   ///< That a pull costs on the wire, whichever way it went.
  std::span<const float> rows;      ///< Of all rows wanted, in their order.
  std::span<const std::byte> rest;  ///< What was pulled, by gRPC.
};

/// The bytes before the rows' floats, which follow.
std::span<std::byte> begin_reply(std::span<std::byte> bytes, const ReplyHeader& header,
                                 std::uint64_t pulled_bytes, std::size_t row_floats);
constexpr std::size_t kReplyHeadBytes = 40 + sizeof(ReplyHeader);  ///< That begin_reply() writes.
constexpr std::size_t kReplyBytes = 256;  ///< Room that is enough for it, and for an error's text.
std::size_t write_error(std::span<std::byte> bytes, const Error& error);

/// Throws the error where the reply is one.
WireReply read_reply(std::span<const std::byte> bytes);

/// Copies the rows of a reply to where they were wanted.
void place_rows(const WireReply& reply, std::span<const RowsWanted> wanted);

/// What a worker of the server's host says of itself.
struct Hello {
  std::int64_t pid = 0;
  /// Outgoing floats, then incoming ones; each part 64-byte aligned. Empty where requests travel by
  /// gRPC: the server then only watches the process.
  std::string floats_path = {};
  std::uint64_t floats = 0;
  std::uint64_t part_begin = 0;  ///< The server's part of them.
  std::string side_path = {};    ///< The two halves: requests to, replies from this server.
};
std::string to_text(const Hello& hello);
Hello hello_from(std::span<const std::byte> text);

}  // namespace cohort
