#include "server/server_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/private_memory.h"
#include "cluster/host_id.h"
#include "compression/error_feedback.h"
#include "compression/matrices.h"
#include "rpc/rpc.h"
#include "server/door.h"
#include "server/server_link.h"
#include "server/worker_codec.h"

namespace cohort {
namespace {

/// Outgoing floats, then incoming ones, where all servers of this host can reach them; or in memory
/// of this process where none can.
class WorkerFloats {
 public:
  WorkerFloats(std::size_t count, bool shared) : count_(count) {
    const std::size_t bytes = 2 * whole_lines(count) * sizeof(float) + sizeof(float);
    if (shared) {
      shared_ = SharedMemory::create(bytes);
    } else {
      private_ = PrivateMemory(bytes);
    }
    floats_ = {reinterpret_cast<float*>(shared ? shared_.data() : private_.bytes().data()),
               2 * whole_lines(count)};
  }

  std::span<float> outgoing() const { return floats_.first(count_); }
  std::span<float> incoming() const { return floats_.subspan(whole_lines(count_), count_); }
  std::string path() const { return shared_.path(); }

 private:
  std::size_t count_;
  SharedMemory shared_;
  PrivateMemory private_;
  std::span<float> floats_;
};

/// What a worker keeps of one server.
struct ServerState {
  ShardPart dense;
  std::vector<ShardPart> rows = {};  ///< Of each table.
  std::unique_ptr<ServerLink> link = {};
  std::unique_ptr<ErrorFeedback> encoder = {};  ///< With compression.
  std::unique_ptr<Codec> decoder = {};
  std::vector<float> change = {};  ///< That a pulled message says.
  std::uint64_t sequence = 0;
  std::uint64_t version = 0;
  bool has_pulled = false;
  std::vector<RowsPushed> pushed = {};
};

}  // namespace

struct ServerClient::State {
  State(const ClientOptions& options_, Store& store)
      : options(options_),
        addresses(find_servers(options_, store)),
        floats(options_.dense, any_of_this_host()) {
    for (int server = 0; server < options.servers; ++server) add_server(server);
  }

  static std::vector<ServerAddress> find_servers(const ClientOptions& options, Store& store) {
    std::vector<ServerAddress> found;
    for (int server = 0; server < options.servers; ++server) {
      found.push_back(
          server_address_from(store.get(server_key(server), Deadline::in(options.timeout))));
    }
    return found;
  }

  bool shares_memory(const ServerAddress& address) const {
    return options.share_memory && address.host == host_id();
  }

  bool any_of_this_host() const {
    return std::ranges::any_of(addresses,
                               [this](const auto& address) { return shares_memory(address); });
  }

  void add_server(int server) {
    const ServerAddress& address = addresses[static_cast<std::size_t>(server)];
    ServerState state;
    state.dense = dense_part(options.dense, options.servers, server);
    for (const auto& table : options.tables) {
      state.rows.push_back(rows_part(table.rows, options.servers, server));
    }
    if (compresses(options.compression) && size_of(state) > 0) add_codecs(state, server);
    const auto naming = [&](const Error& error) { return named(error, server); };
    try {
      if (shares_memory(address)) {
        state.link = make_memory_link({.address = address,
                                       .hello = {.pid = ::getpid(),
                                                 .floats_path = floats.path(),
                                                 .floats = options.dense,
                                                 .part_begin = state.dense.begin,
                                                 .side_path = {}},
                                       .worker = options.worker,
                                       .servers = options.servers,
                                       .cores = options.cores,
                                       .dense = size_of(state)},
                                      deadline());
      } else {
        state.link = make_rpc_link(address, part_of(floats.outgoing(), state.dense));
      }
    } catch (const Error& error) {
      throw naming(error);
    }
    servers.push_back(std::move(state));
  }

  void add_codecs(ServerState& state, int server) const {
    const CodecShape shape{
        .count = size_of(state),
        .matrices = matrices_within(options.matrices, state.dense.begin, state.dense.end)};
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

  static std::size_t size_of(const ServerState& state) {
    return state.dense.end - state.dense.begin;
  }
  static std::span<float> part_of(std::span<float> all, const ShardPart& part) {
    return all.subspan(part.begin, part.end - part.begin);
  }
  Deadline deadline() const { return Deadline::in(options.timeout); }

  static Error named(const Error& error, int server) {
    return error.with_context(fmt::format("parameter server {}", server));
  }

  /// Runs `body` for every server; the first error stays, and every later call throws it again.
  template <class Body>
  void for_all(Body&& body) {
    if (failure) throw *failure;
    for (int server = 0; server < options.servers; ++server) {
      try {
        body(server, servers[static_cast<std::size_t>(server)]);
      } catch (const Error& error) {
        failure = named(error, server);
        throw *failure;
      }
    }
  }

  RequestHeader header_of(const Exchange& exchange, int server, ServerState& state) const {
    RequestHeader header;
    header.worker = options.worker;
    header.push = exchange.push;
    header.pull = exchange.pull;
    header.claim = exchange.claim && server == 0;
    header.hold = exchange.hold;
    header.apply = exchange.apply;
    header.want_norm = exchange.want_norm;
    header.stop = exchange.stop;
    header.finished = exchange.finished;
    header.exact = exchange.exact;
    header.sequence = exchange.push ? ++state.sequence : state.sequence;
    header.version = state.version;
    header.lr = exchange.lr;
    header.loss = exchange.loss;
    header.scale = exchange.scale;
    return header;
  }

  /// The rows of `exchange` that this server has; they ascend, so they are one stretch of each
  /// list.
  void choose_rows(const Exchange& exchange, ServerState& state) const {
    state.pushed.clear();
    for (std::size_t table = 0; table < exchange.rows.size(); ++table) {
      const Exchange::Rows& all = exchange.rows[table];
      const auto first = std::ranges::lower_bound(all.rows, state.rows[table].begin);
      const auto end = std::ranges::lower_bound(all.rows, state.rows[table].end);
      if (first == end) continue;
      const std::size_t width = options.tables[table].width;
      const auto begin = static_cast<std::size_t>(first - all.rows.begin());
      const auto count = static_cast<std::size_t>(end - first);
      state.pushed.push_back(
          {.table = static_cast<std::uint32_t>(table),
           .rows = std::span(all.rows).subspan(begin, count),
           .values = std::span(all.values).subspan(begin * width, count * width)});
    }
  }

  void start(const Exchange& exchange, int server, ServerState& state) {
    LinkRequest request{.header = header_of(exchange, server, state)};
    if (exchange.push) {
      choose_rows(exchange, state);
      request.rows = state.pushed;
      if (state.encoder) {
        request.encoded = state.encoder->encode(part_of(floats.outgoing(), state.dense));
      }
    }
    state.link->start(request, deadline());
  }

  void take_pulled(const Exchange& exchange, const LinkReply& reply, ServerState& state) {
    if (!exchange.pull) return;
    state.version = reply.header.version;
    const bool plain = !state.decoder || !state.has_pulled || exchange.exact;
    state.has_pulled = true;
    if (reply.in_place) return;
    const auto incoming = part_of(floats.incoming(), state.dense);
    if (plain) {
      if (reply.pulled.size() != incoming.size_bytes()) {
        fail(ErrorCode::corrupt, "it sent {} bytes of parameters instead of {}",
             reply.pulled.size(), incoming.size_bytes());
      }
      std::memcpy(incoming.data(), reply.pulled.data(), reply.pulled.size());
    } else {
      state.decoder->decode(reply.pulled, state.change);
      for (std::size_t i = 0; i < incoming.size(); ++i) incoming[i] += state.change[i];
    }
  }

  const ClientOptions options;
  std::vector<ServerAddress> addresses;
  WorkerFloats floats;
  std::vector<ServerState> servers;
  std::optional<Error> failure;
  bool closed = false;
};

ServerClient::ServerClient(const ClientOptions& options, Store& store)
    : state_(std::make_unique<State>(options, store)) {}

ServerClient::~ServerClient() {
  close();
}

void ServerClient::initialise(std::span<const float> dense,
                              const std::vector<std::span<const float>>& tables) {
  const ClientOptions& options = state_->options;
  state_->for_all([&](int server, ServerState& state) {
    ShardShape shape{
        .dense = State::size_of(state),
        .matrices = matrices_within(options.matrices, state.dense.begin, state.dense.end)};
    WireHead head{.kind = WireKind::initialise};
    head.header.worker = options.worker;
    Bytes message;
    write_request(message, head, {}, {});
    MessageParts parts(2);  // The message and the shape come first, once both are complete.
    parts.push_back(std::as_bytes(dense.subspan(state.dense.begin, shape.dense)));
    for (std::size_t table = 0; table < tables.size(); ++table) {
      const ShardPart rows = state.rows[table];
      const std::size_t width = options.tables[table].width;
      shape.tables.push_back({static_cast<std::uint32_t>(rows.begin),
                              static_cast<std::uint32_t>(rows.end),
                              static_cast<std::uint32_t>(width)});
      parts.push_back(std::as_bytes(
          tables[table].subspan(rows.begin * width, (rows.end - rows.begin) * width)));
    }
    Bytes shape_bytes;
    write_shape(shape_bytes, shape);
    parts[0] = message;
    parts[1] = shape_bytes;
    RpcClient client(state_->addresses[static_cast<std::size_t>(server)].rpc);
    client.call(parts, state_->deadline());
  });
}

std::span<float> ServerClient::outgoing() const {
  return state_->floats.outgoing();
}

std::span<float> ServerClient::incoming() const {
  return state_->floats.incoming();
}

ExchangeReply ServerClient::exchange(const Exchange& exchange) {
  // Work is handed out by server 0 alone.
  const bool claim_only = exchange.claim && !exchange.push && !exchange.pull && !exchange.finished;
  const auto takes_part = [&](int server) { return server == 0 || !claim_only; };
  state_->for_all([&](int server, ServerState& state) {
    if (takes_part(server)) state_->start(exchange, server, state);
  });
  ExchangeReply all;
  state_->for_all([&](int server, ServerState& state) {
    if (!takes_part(server)) return;
    const LinkReply reply = state.link->wait(state_->deadline());
    state_->take_pulled(exchange, reply, state);
    const ReplyHeader& header = reply.header;
    all.loss = header.loss;
    all.stop = all.stop || header.stop;
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

void ServerClient::pull_rows(std::size_t table, std::span<const std::uint32_t> rows,
                             std::span<float> values) {
  const std::size_t width = state_->options.tables[table].width;
  std::vector<std::vector<std::uint32_t>> wanted(state_->servers.size());
  std::vector<std::vector<float>> found(state_->servers.size());
  std::vector<RowsWanted> blocks(state_->servers.size());
  std::vector<std::size_t> server_of(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto owner = std::ranges::find_if(state_->servers, [&](const ServerState& state) {
      return rows[i] >= state.rows[table].begin && rows[i] < state.rows[table].end;
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
    request.header.worker = state_->options.worker;
    request.header.version = state.version;
    request.wanted = {&blocks[index], 1};
    state.link->start(request, state_->deadline());
  });
  state_->for_all([&](int server, ServerState& state) {
    if (!wanted[static_cast<std::size_t>(server)].empty()) state.link->wait(state_->deadline());
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
  goodbye.header.worker = state_->options.worker;
  for (ServerState& state : state_->servers) {
    try {
      // A request that failed may still be under way; nobody waits for its answer any more.
      state.link->start(goodbye, Deadline::in(kGoodbye));
      state.link->wait(Deadline::in(kGoodbye));
    } catch (const std::exception&) {
      // It is gone or will notice by itself that this worker is.
    }
  }
}

}  // namespace cohort
