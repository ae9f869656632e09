#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compression/error_feedback.h"
#include "os/private_memory.h"
#include "os/shared_memory.h"
#include "rpc/rpc.h"
#include "server/client/server_client.h"
#include "server/client/server_link.h"
#include "server/door/door.h"
#include "server/wire/model_message.h"

namespace cohort {

/// Outgoing floats, then incoming ones, where all servers of this host can reach them; or in memory
/// of this process where none can.
class WorkerFloats {
 public:
  WorkerFloats(std::size_t count, bool shared);

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
  ShardShape shape;             ///< Its part of the model,
  std::size_t dense_begin = 0;  ///< whose dense floats begin here in the whole.
  std::unique_ptr<ServerLink> link = {};
  std::unique_ptr<RpcClient> calls = {};        ///< For what is said only now and then.
  std::unique_ptr<ErrorFeedback> encoder = {};  ///< With compression.
  std::unique_ptr<Codec> decoder = {};
  std::vector<float> change = {};           ///< That a pulled message says.
  std::span<const std::byte> encoded = {};  ///< The message of the push that is under way.
  std::uint64_t version = 0;                ///< Of what was pulled last.
  std::uint64_t heard = 0;                  ///< That the server said it has.
  bool has_pulled = false;
  std::vector<RowsPushed> pushed = {};
  SharedMemory model_memory = {};  ///< Where this host's server writes a model that is read.

  std::span<float> part_of(std::span<float> all) const {
    return all.subspan(dense_begin, shape.dense);
  }
};

struct ServerClient::State {
  State(const ClientOptions& options, Store& store);

  Deadline deadline() const { return options.timeout.deadline(); }
  bool shares_memory(const ServerAddress& address) const;
  bool any_of_this_host() const;
  void add_server(int server);
  void add_codecs(ServerState& state, int server) const;
  std::unique_ptr<ServerLink> make_link(const ServerAddress& address, const ServerState& state);

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
  RequestHeader header_of(const Exchange& exchange, int server, ServerState& state) const;
  void choose_rows(const Exchange& exchange, ServerState& state) const;
  void encode(ServerState& state) const;
  void start(const Exchange& exchange, int server, ServerState& state);
  ExchangeReply collect(const Exchange& exchange);
  UnansweredPush bytes_of(const Exchange& push);
  void take_pulled(const Exchange& exchange, const LinkReply& reply, ServerState& state);

  // The whole model; see server_model.cc.
  Bytes head_of(WireKind kind) const;
  ReplyHeader look(ServerState& state);
  void give_part(const ServerModel& model, int server, ServerState& state);
  std::size_t part_floats() const;
  void read_floats(ServerModel& model, const ModelMessage& head, ServerState& state);

  const ClientOptions options;
  std::vector<ServerAddress> addresses;
  WorkerFloats floats;
  std::vector<ServerState> servers;
  std::uint64_t sequence = 0;  ///< Of the last push.
  UnansweredPush unanswered;
  std::optional<Error> failure;
  bool closed = false;
};

}  // namespace cohort
