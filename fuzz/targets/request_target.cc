// Requests of workers to parameter servers, by shared memory or gRPC.

#include "server/wire/wire.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

using server::Request;
using server::RequestKind;

std::string request_seed(const Request& request, std::string_view rest) {
  std::vector<std::byte> bytes;
  server::write_request(bytes, request);
  return std::string(text_of(bytes)).append(rest);
}

}  // namespace

void request(Bytes input) {
  (void)server::kind_of(input);
  const Request request = server::read_request(input);
  (void)server::wanted_floats(request);
  // Every view is of the message.
  double sum = 0;
  for (const auto& block : request.rows) {
    for (const std::uint32_t row : block.rows) sum += row;
    for (const float value : block.values) sum += value;
  }
  for (const auto& block : request.rows_wanted) {
    for (const std::uint32_t row : block.rows) sum += row;
  }
  for (const std::byte byte : request.rest) sum += std::to_integer<int>(byte);
  volatile double kept = sum;
  (void)kept;
}

Seeds request_seeds() {
  const std::vector<std::uint32_t> rows = {3, 7}, wanted = {9};
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<float> place(2);
  Request full{.kind = RequestKind::exchange, .number = 77};
  full.header.worker = 5;
  full.header.push = full.header.pull = full.header.claim = true;
  full.rows = {{.table = 1, .rows = rows, .values = values}};
  full.rows_wanted = {{.table = 2, .rows = wanted, .values = place}};
  full.pieces = {{.step = 4, .part = 1}};
  Seeds seeds = {request_seed(full, "rest")};
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(server::kLastRequestKind);
       ++kind) {
    seeds.push_back(request_seed({.kind = static_cast<RequestKind>(kind)}, "1234"));
  }
  return seeds;
}

}  // namespace cohort::fuzz
