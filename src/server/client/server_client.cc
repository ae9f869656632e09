#include "server/client/server_client.h"

#include <unistd.h>

#include <algorithm>

#include "cluster/host_id.h"
#include "compression/codec.h"
#include "server/client/server_client_state.h"
#include "server/wire/shard_shape.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

/// Waits for each until it has appeared.
std::vector<ServerAddress> find_servers(const ClientOptions& options, cluster::Store& store) {
  std::vector<ServerAddress> found;
  for (int server = 0; server < options.servers; ++server) {
    found.push_back(server_address_from(store.get(server_key(server), options.timeout.deadline())));
  }
  return found;
}

/// Of what is said now and then: a part of the model, or what a codec remembers, which is no more
/// than twice what it is of.
std::size_t largest_reply(const ClientOptions& options, const ShardShape& shape) {
  return rpc::kLeastMessageLimit + options.model_part_bytes + 2 * shape.floats() * sizeof(float);
}

}  // namespace

WorkerFloats::WorkerFloats(std::size_t count, bool shared) : count_(count) {
  const std::size_t bytes = 2 * whole_lines(count) * sizeof(float) + sizeof(float);
  if (shared) {
    shared_ = os::SharedMemory::create(bytes);
  } else {
    private_ = os::PrivateMemory(bytes);
  }
  floats_ = {reinterpret_cast<float*>(shared ? shared_.data() : private_.bytes().data()),
             2 * whole_lines(count)};
}

ServerClient::State::State(const ClientOptions& options_, cluster::Store& store_)
    : options(options_),
      store(store_),
      addresses(find_servers(options_, store_)),
      floats(options_.dense, any_of_this_host()) {
  for (int server = 0; server < options.servers; ++server) add_server(server);
}

bool ServerClient::State::shares_memory(const ServerAddress& address) const {
  return options.share_memory && address.host == cluster::host_id();
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
    state.link = make_link(server, state);
    state.calls = std::make_unique<rpc::RpcClient>(
        address.rpc, store.pass(), worker_member(options.worker, options.generation),
        rpc::RpcOptions{.max_message_bytes = largest_reply(options, state.shape)});
  } catch (const Error& error) {
    throw error.with_context(fmt::format("parameter server {}", server));
  }
  servers.push_back(std::move(state));
}

std::unique_ptr<ServerLink> ServerClient::State::make_link(int server, const ServerState& state) {
  const ServerAddress& address = addresses[static_cast<std::size_t>(server)];
  if (!shares_memory(address)) {
    return make_rpc_link({.address = address,
                          .pass = store.pass(),
                          .worker = options.worker,
                          .generation = options.generation,
                          .outgoing = state.part_of(floats.outgoing())},
                         deadline());
  }
  return make_memory_link(
      {.address = address,
       .store = store,
       .floats = floats.shared(),
       .hello = {.pid = ::getpid(), .floats = options.dense, .part_begin = state.dense_begin},
       .server = server,
       .worker = options.worker,
       .generation = options.generation,
       .servers = options.servers,
       .cores = options.cores,
       .dense = state.shape.dense},
      deadline());
}

/// The seed tells apart workers and servers, so that what codecs draw at random is nobody else's.
void ServerClient::State::add_codecs(ServerState& state, int server) const {
  const compression::CodecShape shape{.count = state.shape.dense, .matrices = state.shape.matrices};
  const std::uint64_t seed = options.seed +
                             1000003ULL * static_cast<std::uint64_t>(options.worker) +
                             static_cast<std::uint64_t>(server);
  state.encoder = std::make_unique<compression::ErrorFeedback>(
      compression::make_codec(options.compression, shape, seed), shape.count,
      compression::ErrorFeedback::Options{.keep_rest = options.compression.error_feedback,
                                          .momentum = options.momentum});
  state.decoder = compression::make_codec(options.compression, shape, seed);
  state.change.resize(shape.count);
}

ServerClient::ServerClient(const ClientOptions& options, cluster::Store& store)
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

Traffic ServerClient::traffic() const {
  Traffic sum;
  for (const ServerState& state : state_->servers) sum += state.link->traffic();
  return sum;
}

/// Where an exchange has failed the worker only steps out: it comes to the next group with the work
/// it has taken, and a push that it may have to make again.
void ServerClient::close() noexcept {
  constexpr auto kGoodbye = std::chrono::seconds(2);
  if (state_->closed) return;
  state_->closed = true;
  Request goodbye{.kind = state_->failure ? RequestKind::step_out : RequestKind::leave,
                  .header = header_from(state_->options.generation, state_->options.worker)};
  for (ServerState& state : state_->servers) {
    try {
      if (state_->failure) {
        // A request may still be under way, and what it refers to stays as it is.
        rpc::Bytes message;
        write_request(message, goodbye);
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

}  // namespace cohort::server
