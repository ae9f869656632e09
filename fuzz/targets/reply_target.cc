// Replies of parameter servers to workers, and the rows in them brought to their place.

#include <array>

#include "base/fail.h"
#include "server/wire/wire.h"
#include "targets.h"

namespace cohort::fuzz {

void reply(Bytes input) {
  const server::Reply reply = server::read_reply(input);
  std::array<float, 4> place{};
  const std::array<std::uint32_t, 2> rows = {1, 2};
  const server::RowsWanted wanted[] = {{.table = 0, .rows = rows, .values = place, .width = 2}};
  if (!reply.rows.empty()) server::place_rows(reply, wanted);
}

Seeds reply_seeds() {
  std::array<std::byte, server::kReplyBytes> room{};
  const std::array<float, 4> rows = {1, 2, 3, 4};
  server::ReplyHeader header;
  header.version = 8;
  header.applied = header.claim_end = true;
  const auto head = [&](std::size_t floats) {
    return std::string(text_of(server::begin_reply(room, header, 12, floats)));
  };
  return {head(0) + "rest", head(rows.size()).append(text_of(std::as_bytes(std::span(rows))))};
}

}  // namespace cohort::fuzz
