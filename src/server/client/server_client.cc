#include "server/client/server_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/failpoint.h"
#include "cluster/host_id.h"
#include "compression/matrices.h"
#include "server/client/server_client_state.h"
#include "server/memory/shard_parts.h"
#include "server/shard/worker_codec.h"

namespace cohort {
namespace {

std::vector<ServerAddress> find_servers(const ClientOptions& options, Store& store) {
  std::vector<ServerAddress> found;
  for (int server = 0; server < options.servers; ++server) {
    found.push_back(server_address_from(store.get(server_key(server), options.timeout.deadline())));
  }
  return found;
}

}  // namespace

WorkerFloats::WorkerFloats(std::size_t count, bool shared) : count_(count) {
  const std::size_t bytes = 2 * whole_lines(count) * sizeof(float) + sizeof(float);
  if (shared) {
    shared_ = SharedMemory::create(bytes);
  } else {
    private_ = PrivateMemory(bytes);
  }
  floats_ = {reinterpret_cast<float*>(shared ? shared_.data() : private_.bytes().data()),
             2 * whole_lines(count)};
}

ServerClient::State::State(const ClientOptions& options_, Store& store)
    : options(options_),
      addresses(find_servers(options_, store)),
      floats(options_.dense, any_of_this_host()) {
  for (int server = 0; server < options.servers; ++server) add_server(server);
}

bool ServerClient::State::shares_memory(const ServerAddress& address) const {
  return options.share_memory && address.host == host_id();
}

bool ServerClient::State::any_of_this_host() const {
  return std::ranges::any_of(addresses,
                             [this](const auto& address) { return shares_memory(address); });
}

void ServerClient::State::add_server(int server) {
  const ServerAddress& address = addresses[static_cast<std::size_t>(server)];
  const ModelSize model{
      .dense = options.dense, .tables = options.tables, .matrices = options.matrices};
  ServerState state{.shape = shard_shape(model, options.servers, server),
                    .dense_begin = dense_part(options.dense, options.servers, server).begin};
  if (compresses(options.compression) && state.shape.dense > 0) add_codecs(state, server);
  try {
    state.link = make_link(address, state);
    state.calls = std::make_unique<RpcClient>(address.rpc);
  } catch (const Error& error) {
    throw error.with_context(fmt::format("parameter server {}", server));
  }
  servers.push_back(std::move(state));
}

std::unique_ptr<ServerLink> ServerClient::State::make_link(const ServerAddress& address,
                                                           const ServerState& state) {
  if (!shares_memory(address)) {
    return make_rpc_link({.address = address,
                          .worker = options.worker,
                          .epoch = options.epoch,
                          .outgoing = state.part_of(floats.outgoing())},
                         deadline());
  }
  return make_memory_link({.address = address,
                           .hello = {.pid = ::getpid(),
                                     .floats_path = floats.path(),
                                     .floats = options.dense,
                                     .part_begin = state.dense_begin,
                                     .side_path = {}},
                           .worker = options.worker,
                           .epoch = options.epoch,
                           .servers = options.servers,
                           .cores = options.cores,
                           .dense = state.shape.dense},
                          deadline());
}

void ServerClient::State::add_codecs(ServerState& state, int server) const {
  const CodecShape shape{.count = state.shape.dense, .matrices = state.shape.matrices};
  const std::uint64_t seed = options.seed +
                             1000003ULL * static_cast<std::uint64_t>(options.worker) +
                             static_cast<std::uint64_t>(server);
  state.encoder = std::make_unique<ErrorFeedback>(
      make_codec(options.compression, shape, seed), shape.count,
      ErrorFeedback::Options{.keep_rest = options.compression.error_feedback,
                             .momentum = options.momentum});
  state.decoder = make_codec(options.compression, shape, seed);
  state.change.resize(shape.count);
}

RequestHeader ServerClient::State::header_of(const Exchange& exchange, int server,
                                             ServerState& state) const {
  RequestHeader header;
  header.epoch = options.epoch;
  header.worker = options.worker;
  header.push = exchange.push;
  header.pull = exchange.pull;
  header.claim = exchange.claim && server == 0;
  header.hold = exchange.hold;
  header.apply = exchange.apply;
  header.want_norm = exchange.want_norm;
  header.stop = exchange.stop;
  header.save = exchange.save;
  header.finished = exchange.finished;
  header.exact = exchange.exact;
  header.sequence = sequence;
  header.version = state.version;
  header.lr = exchange.lr;
  header.loss = exchange.loss;
  header.scale = exchange.scale;
  return header;
}

/// The rows of `exchange` that this server has; they ascend, so they are one stretch of each list.
void ServerClient::State::choose_rows(const Exchange& exchange, ServerState& state) const {
  state.pushed.clear();
  for (std::size_t table = 0; table < exchange.rows.size(); ++table) {
    const Exchange::Rows& all = exchange.rows[table];
    const TableShape& own = state.shape.tables[table];
    const auto first = std::ranges::lower_bound(all.rows, own.first_row);
    const auto end = std::ranges::lower_bound(all.rows, own.end_row);
    if (first == end) continue;
    const auto begin = static_cast<std::size_t>(first - all.rows.begin());
    const auto count = static_cast<std::size_t>(end - first);
    state.pushed.push_back(
        {.table = static_cast<std::uint32_t>(table),
         .rows = std::span(all.rows).subspan(begin, count),
         .values = std::span(all.values).subspan(begin * own.width, count * own.width)});
  }
}

void ServerClient::State::start(const Exchange& exchange, int server, ServerState& state) {
  LinkRequest request{.header = header_of(exchange, server, state)};
  if (exchange.push) {
    choose_rows(exchange, state);
    request.rows = state.pushed;
    encode(state);
    request.encoded = state.encoded;
  }
  state.link->start(request, options.timeout);
}

/// Once for a push: what the message leaves out is added to the next one.
void ServerClient::State::encode(ServerState& state) const {
  if (!state.encoder || !state.encoded.empty()) return;
  state.encoded = state.encoder->encode(state.part_of(floats.outgoing()));
}

/// The same messages that the servers may have got, but that they say whose push they are.
UnansweredPush ServerClient::State::bytes_of(const Exchange& push) {
  UnansweredPush all;
  for (int server = 0; server < options.servers; ++server) {
    ServerState& state = servers[static_cast<std::size_t>(server)];
    RequestHeader header = header_of(push, server, state);
    header.pull = header.claim = header.finished = header.stop = header.want_norm = false;
    header.save = false;
    header.again_epoch = options.epoch;
    header.again_worker = options.worker;
    choose_rows(push, state);
    encode(state);
    Bytes& bytes = all.emplace_back();
    write_request(bytes, {.header = header}, state.pushed, {}, push.pieces);
    const auto rest =
        state.encoder ? state.encoded : std::as_bytes(std::span(state.part_of(floats.outgoing())));
    bytes.insert(bytes.end(), rest.begin(), rest.end());
  }
  return all;
}

void ServerClient::State::take_pulled(const Exchange& exchange, const LinkReply& reply,
                                      ServerState& state) {
  state.heard = reply.header.version;
  if (!exchange.pull) return;
  state.version = reply.header.version;
  const bool plain = !state.decoder || !state.has_pulled || exchange.exact;
  state.has_pulled = true;
  if (reply.in_place) return;
  const auto incoming = state.part_of(floats.incoming());
  if (plain) {
    if (reply.pulled.size() != incoming.size_bytes()) {
      fail(ErrorCode::corrupt, "it sent {} bytes of parameters instead of {}", reply.pulled.size(),
           incoming.size_bytes());
    }
    std::memcpy(incoming.data(), reply.pulled.data(), reply.pulled.size());
  } else {
    state.decoder->decode(reply.pulled, state.change);
    for (std::size_t i = 0; i < incoming.size(); ++i) incoming[i] += state.change[i];
  }
}

ServerClient::ServerClient(const ClientOptions& options, Store& store)
    : state_(std::make_unique<State>(options, store)) {}

ServerClient::~ServerClient() {
  close();
}

std::span<float> ServerClient::outgoing() const {
  return state_->floats.outgoing();
}

std::span<float> ServerClient::incoming() const {
  return state_->floats.incoming();
}

ExchangeReply ServerClient::exchange(const Exchange& exchange) {
  if (state_->failure) throw *state_->failure;
  if (exchange.push) ++state_->sequence;
  for (ServerState& state : state_->servers) state.encoded = {};
  try {
    return state_->collect(exchange);
  } catch (const Error&) {
    if (exchange.push && !exchange.hold) state_->unanswered = state_->bytes_of(exchange);
    throw;
  }
}

ExchangeReply ServerClient::State::collect(const Exchange& exchange) {
  // Work is handed out by server 0 alone.
  const bool claim_only = exchange.claim && !exchange.push && !exchange.pull && !exchange.finished;
  const auto takes_part = [&](int server) { return server == 0 || !claim_only; };
  for_all([&](int server, ServerState& state) {
    if (!takes_part(server)) return;
    if (server > 0 && exchange.push) failpoint("worker.between-pushes");
    start(exchange, server, state);
  });
  ExchangeReply all;
  for_all([&](int server, ServerState& state) {
    if (!takes_part(server)) return;
    const LinkReply reply = state.link->wait(options.timeout);
    take_pulled(exchange, reply, state);
    const ReplyHeader& header = reply.header;
    all.loss = header.loss;
    all.stop = all.stop || header.stop;
    all.save = all.save || header.save;
    all.diverged_rank = std::max(all.diverged_rank, header.diverged_rank);
    all.square_sum += header.square_sum;
    all.staleness = std::max(all.staleness, header.staleness);
    all.dropped = all.dropped || header.dropped;
    all.held_seconds = std::max(all.held_seconds, header.held_seconds);
    if (server == 0 && exchange.claim && !header.claim_end) {
      all.claim = Claim{.step = header.claim_step, .part = header.claim_part};
    }
  });
  return all;
}

const UnansweredPush& ServerClient::unanswered() const {
  return state_->unanswered;
}

UnansweredPush ServerClient::unsent(const Exchange& push) {
  ++state_->sequence;
  for (ServerState& state : state_->servers) state.encoded = {};
  return state_->bytes_of(push);
}

void ServerClient::push_again(const UnansweredPush& push) {
  if (push.size() != state_->servers.size()) {
    fail(ErrorCode::invalid, "a push to {} servers cannot be made again to {}", push.size(),
         state_->servers.size());
  }
  std::vector<WireRequest> requests;
  state_->for_all([&](int server, ServerState& state) {
    WireRequest& wire = requests.emplace_back(read_request(push[static_cast<std::size_t>(server)]));
    wire.header.epoch = state_->options.epoch;
    wire.header.worker = state_->options.worker;
    LinkRequest request{.header = wire.header, .rows = wire.rows, .pieces = wire.pieces};
    const auto dense = std::as_writable_bytes(state.part_of(state_->floats.outgoing()));
    if (state.encoder) {
      request.encoded = wire.rest;
    } else if (wire.rest.size() == dense.size()) {
      std::ranges::copy(wire.rest, dense.begin());
    } else {
      fail(ErrorCode::invalid, "a push of {} bytes is made again where there is room for {}",
           wire.rest.size(), dense.size());
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
  std::vector<std::vector<std::uint32_t>> wanted(state_->servers.size());
  std::vector<std::vector<float>> found(state_->servers.size());
  std::vector<RowsWanted> blocks(state_->servers.size());
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
  state_->for_all([&](int server, ServerState& state) {
    const auto index = static_cast<std::size_t>(server);
    if (wanted[index].empty()) return;
    found[index].resize(wanted[index].size() * width);
    blocks[index] = {static_cast<std::uint32_t>(table), wanted[index], found[index]};
    LinkRequest request;
    request.header.epoch = state_->options.epoch;
    request.header.worker = state_->options.worker;
    request.header.version = state.version;
    request.wanted = {&blocks[index], 1};
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

std::uint64_t ServerClient::bytes_sent() const {
  std::uint64_t sum = 0;
  for (const ServerState& state : state_->servers) sum += state.link->traffic().sent;
  return sum;
}

std::uint64_t ServerClient::bytes_received() const {
  std::uint64_t sum = 0;
  for (const ServerState& state : state_->servers) sum += state.link->traffic().received;
  return sum;
}

void ServerClient::close() noexcept {
  constexpr auto kGoodbye = std::chrono::seconds(2);
  if (state_->closed) return;
  state_->closed = true;
  LinkRequest goodbye{.kind = WireKind::leave, .header = {}};
  goodbye.header.epoch = state_->options.epoch;
  goodbye.header.worker = state_->options.worker;
  goodbye.header.returns = state_->failure.has_value();
  for (ServerState& state : state_->servers) {
    try {
      if (state_->failure) {
        // A request may still be under way, and what it refers to stays as it is.
        Bytes message;
        write_request(message, {.kind = goodbye.kind, .header = goodbye.header}, {}, {});
        state.calls->call({message}, Deadline::in(kGoodbye));
        continue;
      }
      state.link->start(goodbye, kGoodbye);
      state.link->wait(kGoodbye);
    } catch (const std::exception&) {
      // It is gone or will notice by itself that this worker is.
    }
  }
}

}  // namespace cohort
