#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <span>
#include <vector>

#include "server/wire/request.h"

namespace cohort::server {

/// Requests and replies as bytes: what a worker's shared memory holds beside the dense floats, and
/// what travels by gRPC. Both sides run the same build, so numbers are written as they are in
/// memory; a *mark* in front tells another build apart. Parsing checks every length and throws
/// Error(corrupt).
///
///   request   mark | kind, counts, number | RequestHeader | pieces | rows pushed … | rows wanted …
///   … then    the encoded message of a push; by gRPC otherwise its dense floats;
///             of other kinds what RequestKind says
///   reply     mark | error code, lengths | ReplyHeader | wanted rows' floats, or the error's text
///   by gRPC   … | dense floats or an encoded message

/// Whether dense floats travel as messages of a codec, at both ends alike: whether those are
/// shorter than the floats.
bool compresses(const CompressionOptions& options);

/// Appends the request to `bytes`, but for `encoded` and `rest`, which may follow.
void write_request(std::vector<std::byte>& bytes, const Request& request);
/// The same of one without lists.
void write_request(std::vector<std::byte>& bytes, RequestKind kind, const RequestHeader& header);

/// Spans are views of the bytes. Of rows that are wanted there is the width and no place yet.
Request read_request(std::span<const std::byte> bytes);

/// The kind alone. Throws Error(corrupt) where it cannot be read.
RequestKind kind_of(std::span<const std::byte> request);

/// Floats that answer all rows wanted.
std::size_t wanted_floats(const Request& request);

/// Writes all of a reply but the rows' floats, which are to follow, and returns what it wrote.
std::span<std::byte> begin_reply(std::span<std::byte> bytes, const ReplyHeader& header,
                                 std::uint64_t pulled_bytes, std::size_t row_floats);
constexpr std::size_t kReplyHeadBytes = 40 + sizeof(ReplyHeader);  ///< That begin_reply() writes.
constexpr std::size_t kReplyBytes = 256;  ///< Room that is enough for it, and for an error's text.
/// A reply that is no more than its header, and what may be appended to it.
std::vector<std::byte> reply_bytes(const ReplyHeader& header);
/// Returns the bytes it took. A text that is too long is cut.
std::size_t write_error(std::span<std::byte> bytes, const Error& error);

/// Spans are views of the bytes. Throws the error where the reply is one.
Reply read_reply(std::span<const std::byte> bytes);

/// Copies the rows of a reply to where they were wanted.
void place_rows(const Reply& reply, std::span<const RowsWanted> wanted);

}  // namespace cohort::server
