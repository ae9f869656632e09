#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fail.h"
#include "compression/error_feedback.h"
#include "os/memory.h"
#include "rpc/rpc.h"
#include "server/client/exchange.h"
#include "server/client/server_client.h"
#include "server/client/server_link.h"
#include "server/wire/door.h"
#include "server/wire/model_message.h"

namespace cohort::server {

/// Outgoing floats, then incoming ones, where all servers of this host can reach them; or in memory
/// of this process where none can.
class WorkerFloats {
 public:
  WorkerFloats(std::size_t count, bool shared);

  std::span<float> outgoing() const { return floats_.first(count_); }
  std::span<float> incoming() const { return floats_.subspan(whole_lines(count_), count_); }
  /// Where servers of this host can reach them.
  const os::SharedMemory& shared() const { return shared_; }

 private:
  std::size_t count_;
  os::SharedMemory shared_;
  os::PrivateMemory private_;
  std::span<float> floats_;
};

/// What a worker keeps of one server.
struct ServerState {
  ShardShape shape;             ///< Its part of the model,
  std::size_t dense_begin = 0;  ///< whose dense floats begin here in the whole.
  std::unique_ptr<ServerLink> link = {};
  std::unique_ptr<rpc::RpcClient> calls = {};  ///< For what is said only now and then.
  std::unique_ptr<compression::ErrorFeedback> encoder = {};  ///< With compression.
  std::unique_ptr<compression::Codec> decoder = {};
  std::vector<float> change = {};  ///< That a pulled message says.
  std::uint64_t version = 0;       ///< Of what was pulled last.
  std::uint64_t heard = 0;         ///< That the server said it has.
  bool has_pulled = false;
  Request request = {};                ///< Of the exchange that is under way, or was last.
  os::SharedMemory model_memory = {};  ///< Where this host's server writes a model that is read.
  std::uint64_t model_number = 0;      ///< As that server knows it.

  std::span<float> part_of(std::span<float> all) const {
    return all.subspan(dense_begin, shape.dense);
  }
};

/// Shared by server_client.cc (construction, end), exchange.cc and server_model.cc.
struct ServerClient::State {
  State(const ClientOptions& options, cluster::Store& store);

  Deadline deadline() const { return options.timeout.deadline(); }
  bool shares_memory(const ServerAddress& address) const;
  bool any_of_this_host() const;
  void add_server(int server);
  void add_codecs(ServerState& state, int server) const;
  std::unique_ptr<ServerLink> make_link(int server, const ServerState& state);
  std::uint64_t memory_for_model(int server, ServerState& state);

  /// Runs `body` for every server; the first error stays, and every later call throws it again.
  template <class Body>
  void for_all(Body&& body) {
    if (failure) throw *failure;
    for (int server = 0; server < options.servers; ++server) {
      try {
        body(server, servers[static_cast<std::size_t>(server)]);
      } catch (const Error& error) {
        failure = error.with_context(fmt::format("parameter server {}", server));
        throw *failure;
      }
    }
  }

  // One exchange.
  void begin_requests();
  RequestHeader header_of(const Exchange& exchange, int server, const ServerState& state) const;
  void add_push(const Exchange& exchange, ServerState& state) const;
  void start(const Exchange& exchange, int server, ServerState& state);
  ExchangeReply collect(const Exchange& exchange);
  UnansweredPush bytes_of(const Exchange& push);
  void take_pulled(const Exchange& exchange, const Reply& reply, ServerState& state);

  // The whole model; see server_model.cc.
  rpc::Bytes head_of(RequestKind kind) const;
  ReplyHeader look(ServerState& state);
  void give_part(const ServerModel& model, int server, ServerState& state);
  std::size_t part_floats() const;
  void read_floats(ServerModel& model, const ModelMessage& head, ServerState& state);

  const ClientOptions options;
  cluster::Store& store;
  std::vector<ServerAddress> addresses;
  WorkerFloats floats;
  std::vector<ServerState> servers;
  std::uint64_t sequence = 0;  ///< Of the last push.
  UnansweredPush unanswered;
  std::optional<Error> failure;  ///< The first; see for_all().
  bool closed = false;
};

}  // namespace cohort::server
