// One exchange of a worker with all of its servers: a request to each, then the answer of each.
// Also pushes that are made again, and rows that are pulled by themselves.

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/failpoint.h"
#include "server/client/server_client_state.h"

namespace cohort::server {

namespace {

/// The rows of `exchange` that this server has; they ascend, so they are one stretch of each list.
void choose_rows(const Exchange& exchange, const ShardShape& shape, std::vector<RowsPushed>& rows) {
  rows.clear();
  for (std::size_t table = 0; table < exchange.rows.size(); ++table) {
    const Exchange::Rows& all = exchange.rows[table];
    const TableShape& own = shape.tables[table];
    const auto first = std::ranges::lower_bound(all.rows, own.first_row);
    const auto end = std::ranges::lower_bound(all.rows, own.end_row);
    if (first == end) continue;
    const auto begin = static_cast<std::size_t>(first - all.rows.begin());
    const auto count = static_cast<std::size_t>(end - first);
    rows.push_back({.table = static_cast<std::uint32_t>(table),
                    .rows = std::span(all.rows).subspan(begin, count),
                    .values = std::span(all.values).subspan(begin * own.width, count * own.width)});
  }
}

}  // namespace

/// A request of nothing to each server, in the memory of its last one.
void ServerClient::State::begin_requests() {
  for (ServerState& state : servers) state.request.clear();
}

RequestHeader ServerClient::State::header_of(const Exchange& exchange, int server,
                                             const ServerState& state) const {
  RequestHeader header{exchange};
  header.claim = exchange.claim && server == 0;
  header.generation = options.generation;
  header.worker = options.worker;
  header.sequence = sequence;
  header.version = state.version;
  return header;
}

/// Encodes once for a push, however often it is added: what the message leaves out is added to the
/// next one.
void ServerClient::State::add_push(const Exchange& exchange, ServerState& state) const {
  choose_rows(exchange, state.shape, state.request.rows);
  if (!state.encoder || !state.request.encoded.empty()) return;
  state.request.encoded = state.encoder->encode(state.part_of(floats.outgoing()));
}

void ServerClient::State::start(const Exchange& exchange, int server, ServerState& state) {
  state.request.header = header_of(exchange, server, state);
  if (exchange.push) add_push(exchange, state);
  state.link->start(state.request, options.timeout);
}

/// The same messages that the servers may have got, but that they say whose push they are, and ask
/// for nothing else.
UnansweredPush ServerClient::State::bytes_of(const Exchange& push) {
  UnansweredPush all;
  for (int server = 0; server < options.servers; ++server) {
    ServerState& state = servers[static_cast<std::size_t>(server)];
    Request& request = state.request;
    request.header = header_of(push, server, state);
    request.header.keep_push_only();
    request.header.again_generation = options.generation;
    request.header.again_worker = options.worker;
    add_push(push, state);
    request.pieces = push.pieces;
    rpc::Bytes& bytes = all.emplace_back();
    write_request(bytes, request);
    const auto rest = state.encoder ? request.encoded
                                    : std::as_bytes(std::span(state.part_of(floats.outgoing())));
    bytes.insert(bytes.end(), rest.begin(), rest.end());
  }
  return all;
}

/// Brings what was pulled to incoming(), where it is not there already.
void ServerClient::State::take_pulled(const Exchange& exchange, const Reply& reply,
                                      ServerState& state) {
  state.heard = reply.header.version;
  if (!exchange.pull) return;
  state.version = reply.header.version;
  const bool plain = !state.decoder || !state.has_pulled || exchange.exact;
  state.has_pulled = true;
  if (reply.in_place) return;
  const auto incoming = state.part_of(floats.incoming());
  if (plain) {
    if (reply.rest.size() != incoming.size_bytes()) {
      fail(ErrorCode::corrupt, "it sent {} bytes of parameters instead of {}", reply.rest.size(),
           incoming.size_bytes());
    }
    std::memcpy(incoming.data(), reply.rest.data(), reply.rest.size());
  } else {
    state.decoder->decode(reply.rest, state.change);
    for (std::size_t i = 0; i < incoming.size(); ++i) incoming[i] += state.change[i];
  }
}

ExchangeReply ServerClient::exchange(const Exchange& exchange) {
  if (state_->failure) throw *state_->failure;
  if (exchange.push) ++state_->sequence;
  state_->begin_requests();
  try {
    return state_->collect(exchange);
  } catch (const Error&) {
    if (exchange.push && !exchange.hold) state_->unanswered = state_->bytes_of(exchange);
    throw;
  }
}

/// All servers work on their part at the same time: nobody is waited for before all have been
/// asked.
ExchangeReply ServerClient::State::collect(const Exchange& exchange) {
  // Work is handed out by server 0 alone.
  const auto takes_part = [&](int server) { return server == 0 || !exchange.only_claims(); };
  for_all([&](int server, ServerState& state) {
    if (!takes_part(server)) return;
    if (server > 0 && exchange.push) failpoint("worker.between-pushes");
    start(exchange, server, state);
  });
  ExchangeReply all;
  for_all([&](int server, ServerState& state) {
    if (!takes_part(server)) return;
    const Reply reply = state.link->wait(options.timeout);
    take_pulled(exchange, reply, state);
    const ReplyHeader& header = reply.header;
    all.loss = header.loss;
    all.stop = all.stop || header.stop;
    all.save = all.save || header.save;
    all.diverged_rank = std::max(all.diverged_rank, header.diverged_rank);
    all.square_sum += header.square_sum;
    all.staleness = std::max(all.staleness, header.staleness);
    all.dropped = all.dropped || header.dropped;
    all.waited_seconds = std::max(all.waited_seconds, header.waited_seconds);
    if (server == 0 && exchange.claim && !header.claim_end) {
      all.claim = cluster::Claim{.step = header.claim_step, .part = header.claim_part};
    }
  });
  return all;
}

const UnansweredPush& ServerClient::unanswered() const {
  return state_->unanswered;
}

UnansweredPush ServerClient::unsent(const Exchange& push) {
  ++state_->sequence;
  state_->begin_requests();
  return state_->bytes_of(push);
}

void ServerClient::push_again(const UnansweredPush& push) {
  if (push.size() != state_->servers.size()) {
    fail(ErrorCode::invalid, "a push to {} servers cannot be made again to {}", push.size(),
         state_->servers.size());
  }
  std::vector<Request> requests;
  state_->for_all([&](int server, ServerState& state) {
    Request& request = requests.emplace_back(read_request(push[static_cast<std::size_t>(server)]));
    request.header.generation = state_->options.generation;
    request.header.worker = state_->options.worker;
    const auto dense = std::as_writable_bytes(state.part_of(state_->floats.outgoing()));
    if (state.encoder) {
      request.encoded = request.rest;
    } else if (request.rest.size() == dense.size()) {
      std::ranges::copy(request.rest, dense.begin());
    } else {
      fail(ErrorCode::invalid, "a push of {} bytes is made again where there is room for {}",
           request.rest.size(), dense.size());
    }
    state.link->start(request, state_->options.timeout);
  });
  state_->for_all([&](int, ServerState& state) {
    state.heard = state.link->wait(state_->options.timeout).header.version;
  });
}

void ServerClient::pull_rows(std::size_t table, std::span<const std::uint32_t> rows,
                             std::span<float> values) {
  const std::size_t width = state_->options.tables[table].width;
  // By server: the rows it has, and its answer. They go back in the order they were asked for.
  std::vector<std::vector<std::uint32_t>> wanted(state_->servers.size());
  std::vector<std::vector<float>> found(state_->servers.size());
  std::vector<std::size_t> server_of(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto owner = std::ranges::find_if(state_->servers, [&](const ServerState& state) {
      const TableShape& own = state.shape.tables[table];
      return rows[i] >= own.first_row && rows[i] < own.end_row;
    });
    if (owner == state_->servers.end()) {
      fail(ErrorCode::invalid, "table {} has no row {}", table, rows[i]);
    }
    server_of[i] = static_cast<std::size_t>(owner - state_->servers.begin());
    wanted[server_of[i]].push_back(rows[i]);
  }
  state_->begin_requests();
  state_->for_all([&](int server, ServerState& state) {
    const auto index = static_cast<std::size_t>(server);
    if (wanted[index].empty()) return;
    found[index].resize(wanted[index].size() * width);
    Request& request = state.request;
    request.header = header_from(state_->options.generation, state_->options.worker);
    request.header.version = state.version;
    request.rows_wanted.push_back({static_cast<std::uint32_t>(table), wanted[index], found[index]});
    state.link->start(request, state_->options.timeout);
  });
  state_->for_all([&](int server, ServerState& state) {
    if (!wanted[static_cast<std::size_t>(server)].empty())
      state.link->wait(state_->options.timeout);
  });
  std::vector<std::size_t> next(state_->servers.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t from = next[server_of[i]]++ * width;
    std::copy_n(found[server_of[i]].data() + from, width, values.data() + i * width);
  }
}

}  // namespace cohort::server
