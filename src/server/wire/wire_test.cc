// Requests and replies come back from bytes as they were. Bytes that are cut short, of another
// build or wrong in any one place are refused as corrupt and never read beyond their end.

#include "server/wire/wire.h"

#include <gmock/gmock.h>

#include <cstring>

namespace cohort::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Bytes = std::vector<std::byte>;

/// A request with rows pushed, rows wanted and a rest of one float.
struct Example {
  Example() {
    const std::vector<std::uint32_t> rows = {3, 7}, wanted = {9};
    const std::vector<float> values = {1, 2, 3, 4};
    std::vector<float> place(2);
    Request request{.kind = RequestKind::exchange, .number = 77};
    request.header.worker = 5;
    request.header.push = request.header.exact = true;
    request.header.lr = 0.25;
    request.rows = {{.table = 1, .rows = rows, .values = values}};
    request.rows_wanted = {{.table = 2, .rows = wanted, .values = place}};
    write_request(bytes, request);
    const float rest = 8;
    const auto* raw = reinterpret_cast<const std::byte*>(&rest);
    bytes.insert(bytes.end(), raw, raw + sizeof rest);
  }

  Bytes bytes;
};

Bytes reply_bytes(const ReplyHeader& header, const std::vector<float>& rows) {
  Bytes bytes(kReplyBytes);
  bytes.resize(begin_reply(bytes, header, 12, rows.size()).size());
  const auto raw = std::as_bytes(std::span(rows));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

TEST(Wire, BringsARequestBack) {
  const Example example;
  const Request request = read_request(example.bytes);
  EXPECT_EQ(request.kind, RequestKind::exchange);
  EXPECT_EQ(request.number, 77U);
  EXPECT_EQ(request.header.worker, 5);
  EXPECT_TRUE(request.header.push && request.header.exact);
  EXPECT_FALSE(request.header.pull || request.header.stop);
  EXPECT_EQ(request.header.lr, 0.25);
  ASSERT_EQ(request.rows.size(), 1U);
  EXPECT_EQ(request.rows[0].table, 1U);
  EXPECT_THAT(request.rows[0].rows, ElementsAre(3U, 7U));
  EXPECT_THAT(request.rows[0].values, ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(request.rows_wanted.size(), 1U);
  EXPECT_THAT(request.rows_wanted[0].rows, ElementsAre(9U));
  EXPECT_EQ(wanted_floats(request), 2U);
  EXPECT_EQ(request.rest.size(), sizeof(float));
}

// A client uses one for all its exchanges.
TEST(Wire, AClearedRequestIsThatOfANewOne) {
  const Example example;
  Request request = read_request(example.bytes);
  request.kind = RequestKind::leave;
  request.pieces = {{.step = 1, .part = 2}};
  request.encoded = request.rest;
  request.clear();
  Bytes cleared, fresh;
  write_request(cleared, request);
  write_request(fresh, Request());
  EXPECT_EQ(cleared, fresh);
  EXPECT_TRUE(request.encoded.empty() && request.rest.empty());
}

TEST(Wire, RefusesARequestThatEndsTooEarly) {
  const Example example;
  for (std::size_t size = 0; size < example.bytes.size() - sizeof(float); ++size) {
    const Bytes cut(example.bytes.begin(), example.bytes.begin() + static_cast<long>(size));
    EXPECT_THROW(read_request(cut), Error) << size << " bytes";
  }
}

TEST(Wire, RefusesBytesOfAnotherFormat) {
  Example other;
  other.bytes[0] ^= std::byte{1};
  EXPECT_THAT([&] { read_request(other.bytes); }, ThrowsMessage<Error>(HasSubstr("same build")));
  Example unknown;
  unknown.bytes[4] = std::byte{200};
  EXPECT_THAT([&] { read_request(unknown.bytes); },
              ThrowsMessage<Error>(HasSubstr("unknown kind 200")));
}

TEST(Wire, RefusesAnExchangeWithAPartThatDoesNotExist) {
  Bytes bytes;
  RequestHeader header;
  header.no_part = 1;
  write_request(bytes, RequestKind::exchange, header);
  EXPECT_THAT([&] { read_request(bytes); }, ThrowsMessage<Error>(HasSubstr("yes nor no")));
}

TEST(Wire, SurvivesAnyByteBeingWrong) {
  const Example example;
  for (std::size_t at = 0; at < example.bytes.size(); ++at) {
    Bytes bytes = example.bytes;
    bytes[at] = std::byte{0xFE};
    try {
      read_request(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << "byte " << at;
    }
  }
}

TEST(Wire, BringsAReplyBack) {
  ReplyHeader header;
  header.version = 9;
  header.claim_end = true;
  const Bytes bytes = reply_bytes(header, {1, 2, 3});
  const Reply reply = read_reply(bytes);
  EXPECT_EQ(reply.header.version, 9U);
  EXPECT_TRUE(reply.header.claim_end);
  EXPECT_EQ(reply.pulled_bytes, 12U);
  std::vector<float> first(1), second(2);
  const RowsWanted wanted[] = {{0, {}, first}, {1, {}, second}};
  place_rows(reply, wanted);
  EXPECT_THAT(first, ElementsAre(1));
  EXPECT_THAT(second, ElementsAre(2, 3));
}

TEST(Wire, RefusesAReplyWithFewerRowsThanWanted) {
  const Bytes bytes = reply_bytes({}, {1, 2, 3});
  std::vector<float> place(4);
  const RowsWanted wanted[] = {{0, {}, place}};
  EXPECT_THROW(place_rows(read_reply(bytes), wanted), Error);
  EXPECT_THROW(read_reply(std::span(bytes).first(bytes.size() - 1)), Error);
}

TEST(Wire, ThrowsTheErrorThatAReplyIs) {
  Bytes bytes(1000);
  Error diverged(ErrorCode::diverged, "The loss is not finite.");
  bytes.resize(write_error(bytes, diverged.about_rank(3)));
  try {
    read_reply(bytes);
    FAIL() << "Nothing was thrown.";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
    EXPECT_EQ(error.rank(), 3);
    EXPECT_STREQ(error.what(), "The loss is not finite.");
  }
  bytes[4] = std::byte{100};  // Of the code.
  EXPECT_THAT([&] { read_reply(bytes); }, ThrowsMessage<Error>(HasSubstr("unknown code 100")));
}

TEST(Wire, CutsAnErrorThatIsLongerThanItsRoom) {
  Bytes bytes(kReplyBytes);
  EXPECT_EQ(write_error(bytes, Error(ErrorCode::io, std::string(1000, 'x'))), kReplyBytes);
  EXPECT_THAT([&] { read_reply(bytes); }, ThrowsMessage<Error>(HasSubstr("xxx")));
}

}  // namespace
}  // namespace cohort::server
