#include "server/wire/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sstream>

#include "base/fail.h"
#include "server/wire/message_bytes.h"

namespace cohort {
namespace {

constexpr std::uint32_t kMark =
    0xC0405000U + static_cast<std::uint32_t>(sizeof(RequestHeader) + sizeof(ReplyHeader));

/// In front of the RequestHeader.
struct RequestFrame {
  std::uint32_t mark = kMark;  // These two come first: see kind_of().
  WireKind kind = WireKind::exchange;
  std::uint32_t rows = 0;
  std::uint32_t wanted = 0;
  std::uint64_t pieces = 0;
  std::uint64_t number = 0;
};

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

/// Where the flags of the headers are.
constexpr std::size_t kRequestFlags[] = {
    offsetof(RequestHeader, push),  offsetof(RequestHeader, pull),
    offsetof(RequestHeader, claim), offsetof(RequestHeader, hold),
    offsetof(RequestHeader, apply), offsetof(RequestHeader, want_norm),
    offsetof(RequestHeader, stop),  offsetof(RequestHeader, finished),
    offsetof(RequestHeader, exact), offsetof(RequestHeader, returns),
    offsetof(RequestHeader, save)};
constexpr std::size_t kReplyFlags[] = {
    offsetof(ReplyHeader, applied),   offsetof(ReplyHeader, dropped),
    offsetof(ReplyHeader, duplicate), offsetof(ReplyHeader, stop),
    offsetof(ReplyHeader, has_model), offsetof(ReplyHeader, claim_end),
    offsetof(ReplyHeader, save)};

/// A bool of another value than 0 and 1 must not be read as one. `header` may be cut short.
void check_flags(std::span<const std::byte> header, std::span<const std::size_t> flags) {
  for (const std::size_t flag : flags) {
    if (flag >= header.size() || std::to_integer<unsigned>(header[flag]) <= 1) continue;
    fail(ErrorCode::corrupt, "A message between worker and server says neither yes nor no.");
  }
}

void check_mark(std::uint32_t mark) {
  if (mark == kMark) return;
  fail(ErrorCode::corrupt,
       "A message between worker and server has another format; run the same build everywhere.");
}

}  // namespace

void write_request(std::vector<std::byte>& bytes, const WireHead& head,
                   std::span<const RowsPushed> rows, std::span<const RowsWanted> wanted,
                   std::span<const Claim> pieces) {
  append(bytes, RequestFrame{.kind = head.kind,
                             .rows = static_cast<std::uint32_t>(rows.size()),
                             .wanted = static_cast<std::uint32_t>(wanted.size()),
                             .pieces = pieces.size(),
                             .number = head.number});
  append(bytes, head.header);
  append_all(bytes, pieces);
  const auto frame_of = [](std::uint32_t table, std::size_t count, std::size_t floats) {
    return RowsFrame{table, static_cast<std::uint32_t>(count),
                     static_cast<std::uint32_t>(count == 0 ? 0 : floats / count)};
  };
  for (const RowsPushed& block : rows) {
    append(bytes, frame_of(block.table, block.rows.size(), block.values.size()));
    append_all(bytes, block.rows);
    append_all(bytes, block.values);
  }
  for (const RowsWanted& block : wanted) {
    append(bytes, frame_of(block.table, block.rows.size(), block.values.size()));
    append_all(bytes, block.rows);
  }
}

WireKind kind_of(std::span<const std::byte> request) {
  MessageReader reader(request);
  check_mark(reader.take<std::uint32_t>());
  return static_cast<WireKind>(reader.take<std::uint32_t>());
}

WireRequest read_request(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  check_flags(bytes.subspan(std::min(bytes.size(), sizeof(RequestFrame))), kRequestFlags);
  const auto frame = reader.take<RequestFrame>();
  check_mark(frame.mark);
  if (frame.kind > WireKind::lost_worker) {
    fail(ErrorCode::corrupt, "A message to a server is of the unknown kind {}.",
         static_cast<std::uint32_t>(frame.kind));
  }
  WireRequest request;
  request.kind = frame.kind;
  request.number = frame.number;
  reader.take_into(request.header);
  if (frame.pieces > reader.rest().size() / sizeof(Claim)) {
    fail(ErrorCode::corrupt, "A push names more pieces of work than its message can.");
  }
  for (std::uint64_t i = 0; i < frame.pieces; ++i) request.pieces.push_back(reader.take<Claim>());
  for (std::uint32_t i = 0; i < frame.rows; ++i) {
    const auto block = reader.take<RowsFrame>();
    const auto rows = reader.take_all<std::uint32_t>(block.count);
    const auto values = reader.take_all<float>(std::uint64_t{block.count} * block.width);
    request.rows.push_back({block.table, rows, values});
  }
  for (std::uint32_t i = 0; i < frame.wanted; ++i) {
    const auto block = reader.take<RowsFrame>();
    request.wanted.push_back({block.table, reader.take_all<std::uint32_t>(block.count), {}});
    request.wanted_widths.push_back(block.width);
  }
  request.rest = reader.rest();
  return request;
}

std::size_t wanted_floats(const WireRequest& request) {
  std::size_t floats = 0;
  for (std::size_t i = 0; i < request.wanted.size(); ++i) {
    floats += request.wanted[i].rows.size() * request.wanted_widths[i];
  }
  return floats;
}

std::span<std::byte> begin_reply(std::span<std::byte> bytes, const ReplyHeader& header,
                                 std::uint64_t pulled_bytes, std::size_t row_floats) {
  const ReplyFrame frame{.pulled_bytes = pulled_bytes, .row_floats = row_floats};
  std::memcpy(bytes.data(), &frame, sizeof frame);
  std::memcpy(bytes.data() + sizeof frame, &header, sizeof header);
  return bytes.first(kReplyHeadBytes);
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

WireReply read_reply(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  check_flags(bytes.subspan(std::min(bytes.size(), sizeof(ReplyFrame))), kReplyFlags);
  const auto frame = reader.take<ReplyFrame>();
  check_mark(frame.mark);
  WireReply reply;
  reader.take_into(reply.header);
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

void place_rows(const WireReply& reply, std::span<const RowsWanted> wanted) {
  std::span<const float> rows = reply.rows;
  for (const RowsWanted& block : wanted) {
    if (block.values.size() > rows.size()) {
      fail(ErrorCode::corrupt, "A server sent fewer rows than it was asked for.");
    }
    std::ranges::copy(rows.first(block.values.size()), block.values.begin());
    rows = rows.subspan(block.values.size());
  }
}

std::string to_text(const Hello& hello) {
  if (hello.floats_path.empty()) return fmt::format("{}", hello.pid);
  return fmt::format("{} {} {} {} {}", hello.pid, hello.floats, hello.part_begin, hello.floats_path,
                     hello.side_path);
}

Hello hello_from(std::span<const std::byte> text) {
  std::istringstream words(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  Hello hello;
  words >> hello.pid;
  if (words && words.eof()) return hello;
  words >> hello.floats >> hello.part_begin >> hello.floats_path >> hello.side_path;
  if (!words) fail(ErrorCode::corrupt, "A worker's greeting cannot be read.");
  return hello;
}

}  // namespace cohort
