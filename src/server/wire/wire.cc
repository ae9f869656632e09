#include "server/wire/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/fail.h"
#include "server/wire/message_bytes.h"

namespace cohort::server {
namespace {

/// Another build most likely has headers of another size.
constexpr std::uint32_t kMark =
    0xC0406000U + static_cast<std::uint32_t>(sizeof(RequestHeader) + sizeof(ReplyHeader));

/// In front of the RequestHeader.
struct RequestFrame {
  std::uint32_t mark = kMark;  // These two come first: see kind_of().
  RequestKind kind = RequestKind::exchange;
  std::uint32_t rows = 0;
  std::uint32_t wanted = 0;
  std::uint64_t pieces = 0;
  std::uint64_t number = 0;
};

/// In front of the rows of one table.
struct RowsFrame {
  std::uint32_t table = 0;
  std::uint32_t count = 0;
  std::uint32_t width = 0;
};

constexpr std::uint32_t kNoError = 0xFFFFFFFF;

/// In front of the ReplyHeader.
struct ReplyFrame {
  std::uint32_t mark = kMark;
  std::uint32_t error = kNoError;
  std::int64_t error_rank = -1;  ///< Who is to blame, where one is.
  std::uint64_t pulled_bytes = 0;
  std::uint64_t row_floats = 0;
  std::uint64_t text_bytes = 0;
};
static_assert(sizeof(ReplyFrame) + sizeof(ReplyHeader) == kReplyHeadBytes);
static_assert(kReplyHeadBytes <= kReplyBytes && kReplyHeadBytes % sizeof(float) == 0);
static_assert((sizeof(RequestFrame) + sizeof(RequestHeader)) % sizeof(float) == 0);

// Its parts and `no_part` are all bits of two bytes, so that every wrong bit is seen.
static_assert(sizeof(ExchangeHead) == 4 * sizeof(double));
static_assert(std::is_trivially_copyable_v<RequestHeader> &&
              std::is_trivially_copyable_v<ReplyHeader>);

/// Where the flags of a reply are.
constexpr std::size_t kReplyFlags[] = {
    offsetof(ReplyHeader, applied),   offsetof(ReplyHeader, dropped),
    offsetof(ReplyHeader, duplicate), offsetof(ReplyHeader, stop),
    offsetof(ReplyHeader, has_model), offsetof(ReplyHeader, claim_end),
    offsetof(ReplyHeader, save)};

[[noreturn]] void fail_flags() {
  fail(ErrorCode::corrupt, "A message between worker and server says neither yes nor no.");
}

/// A bool of another value than 0 and 1 must not be read as one.
void check_flags(const ReplyHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  for (const std::size_t flag : kReplyFlags) {
    if (std::to_integer<unsigned>(bytes[flag]) > 1) fail_flags();
  }
}

void check_mark(std::uint32_t mark) {
  if (mark == kMark) return;
  fail(ErrorCode::corrupt,
       "A message between worker and server has another format; run the same build everywhere.");
}

}  // namespace

bool compresses(const CompressionOptions& options) {
  return options.kind != "none" && options.kind != "auto";
}

void write_request(std::vector<std::byte>& bytes, const Request& request) {
  append(bytes, RequestFrame{.kind = request.kind,
                             .rows = static_cast<std::uint32_t>(request.rows.size()),
                             .wanted = static_cast<std::uint32_t>(request.rows_wanted.size()),
                             .pieces = request.pieces.size(),
                             .number = request.number});
  append(bytes, request.header);
  append_all(bytes, std::span(request.pieces));
  const auto frame_of = [](std::uint32_t table, std::size_t count, std::size_t floats) {
    return RowsFrame{table, static_cast<std::uint32_t>(count),
                     static_cast<std::uint32_t>(count == 0 ? 0 : floats / count)};
  };
  for (const RowsPushed& block : request.rows) {
    append(bytes, frame_of(block.table, block.rows.size(), block.values.size()));
    append_all(bytes, block.rows);
    append_all(bytes, block.values);
  }
  for (const RowsWanted& block : request.rows_wanted) {
    append(bytes, frame_of(block.table, block.rows.size(), block.values.size()));
    append_all(bytes, block.rows);
  }
}

void write_request(std::vector<std::byte>& bytes, RequestKind kind, const RequestHeader& header) {
  append(bytes, RequestFrame{.kind = kind});
  append(bytes, header);
}

RequestKind kind_of(std::span<const std::byte> request) {
  MessageReader reader(request);
  check_mark(reader.take<std::uint32_t>());
  return static_cast<RequestKind>(reader.take<std::uint32_t>());
}

Request read_request(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  const auto frame = reader.take<RequestFrame>();
  check_mark(frame.mark);
  if (frame.kind > kLastRequestKind) {
    fail(ErrorCode::corrupt, "A message to a server is of the unknown kind {}.",
         static_cast<std::uint32_t>(frame.kind));
  }
  Request request{.kind = frame.kind, .number = frame.number};
  reader.take_into(request.header);
  if (request.header.no_part != 0) fail_flags();
  if (frame.pieces > reader.rest().size() / sizeof(cluster::Claim)) {
    fail(ErrorCode::corrupt, "A push names more pieces of work than its message can.");
  }
  for (std::uint64_t i = 0; i < frame.pieces; ++i)
    request.pieces.push_back(reader.take<cluster::Claim>());
  for (std::uint32_t i = 0; i < frame.rows; ++i) {
    const auto block = reader.take<RowsFrame>();
    const auto rows = reader.take_all<std::uint32_t>(block.count);
    const auto values = reader.take_all<float>(std::uint64_t{block.count} * block.width);
    request.rows.push_back({block.table, rows, values});
  }
  for (std::uint32_t i = 0; i < frame.wanted; ++i) {
    const auto block = reader.take<RowsFrame>();
    request.rows_wanted.push_back({.table = block.table,
                                   .rows = reader.take_all<std::uint32_t>(block.count),
                                   .values = {},
                                   .width = block.width});
  }
  request.rest = reader.rest();
  return request;
}

std::size_t wanted_floats(const Request& request) {
  std::size_t floats = 0;
  for (const RowsWanted& block : request.rows_wanted) floats += block.rows.size() * block.width;
  return floats;
}

std::span<std::byte> begin_reply(std::span<std::byte> bytes, const ReplyHeader& header,
                                 std::uint64_t pulled_bytes, std::size_t row_floats) {
  const ReplyFrame frame{.pulled_bytes = pulled_bytes, .row_floats = row_floats};
  std::memcpy(bytes.data(), &frame, sizeof frame);
  std::memcpy(bytes.data() + sizeof frame, &header, sizeof header);
  return bytes.first(kReplyHeadBytes);
}

std::vector<std::byte> reply_bytes(const ReplyHeader& header) {
  std::vector<std::byte> bytes(kReplyHeadBytes);
  begin_reply(bytes, header, 0, 0);
  return bytes;
}

std::size_t write_error(std::span<std::byte> bytes, const Error& error) {
  const std::string text = error.what();
  const auto head = begin_reply(bytes, {}, 0, 0);
  const ReplyFrame frame{.error = static_cast<std::uint32_t>(error.code()),
                         .error_rank = error.rank().value_or(-1),
                         .text_bytes = std::min(text.size(), bytes.size() - head.size())};
  std::memcpy(head.data(), &frame, sizeof frame);
  std::memcpy(bytes.data() + head.size(), text.data(), frame.text_bytes);
  return head.size() + frame.text_bytes;
}

Reply read_reply(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  const auto frame = reader.take<ReplyFrame>();
  check_mark(frame.mark);
  Reply reply;
  reader.take_into(reply.header);
  check_flags(reply.header);  // Of the copy: the other end could write the bytes again.
  if (frame.error != kNoError) {
    if (frame.error > static_cast<std::uint32_t>(ErrorCode::cancelled)) {
      fail(ErrorCode::corrupt, "A server refused a request with the unknown code {}.", frame.error);
    }
    const auto text = reader.take_all<char>(frame.text_bytes);
    Error error(static_cast<ErrorCode>(frame.error), std::string(text.begin(), text.end()));
    if (frame.error_rank >= 0) error.about_rank(static_cast<int>(frame.error_rank));
    throw error;
  }
  reply.pulled_bytes = frame.pulled_bytes;
  reply.rows = reader.take_all<float>(frame.row_floats);
  reply.rest = reader.rest();
  return reply;
}

void place_rows(const Reply& reply, std::span<const RowsWanted> wanted) {
  std::span<const float> rows = reply.rows;
  for (const RowsWanted& block : wanted) {
    if (block.values.size() > rows.size()) {
      fail(ErrorCode::corrupt, "A server sent fewer rows than it was asked for.");
    }
    std::ranges::copy(rows.first(block.values.size()), block.values.begin());
    rows = rows.subspan(block.values.size());
  }
}

}  // namespace cohort::server
