#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/traffic.h"
#include "cluster/store.h"
#include "cluster/work_board.h"
#include "compression/codec.h"
#include "compression/error_feedback.h"
#include "server/client/exchange.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {

/// What a worker must know to find its servers and speak to them: the same on all workers but for
/// `worker`.
struct ClientOptions {
  int worker = 0;
  int servers = 1;
  std::int64_t generation = 0;  ///< Of the membership; servers refuse requests of another one.
  std::size_t dense = 0;        ///< Floats of the model outside tables.
  std::vector<compression::MatrixShape> matrices = {};  ///< Within them.
  using Table = TableSize;
  std::vector<Table> tables = {};
  CompressionOptions compression;
  compression::WorkerMomentum momentum = {};  ///< Of ErrorFeedback.
  std::uint64_t seed = 0;
  bool share_memory = true;  ///< With servers of this host; otherwise everything goes by gRPC.
  int cores = 1;             ///< That the local ranks may use.
  Timeout timeout;           ///< For any one answer.
  /// Models travel in parts of so many bytes, each of which is answered.
  std::size_t model_part_bytes = 32 << 20;
};

/// A model with the slots of the servers' optimizer, as the servers keep it together. It is large
/// and read again and again: whoever fills one uses the vectors it has.
struct ServerModel {
  struct Part {
    std::vector<float> values = {};
    std::vector<std::vector<float>> slots = {};  ///< One per Optimizer::slots(); empty: all zero.
  };
  Part dense = {};
  std::vector<Part> tables = {};  ///< Whole, as ClientOptions::tables.
  std::uint64_t version = 0;      ///< Updates made so far; of several servers the smallest.
  cluster::WorkLeft work = {};    ///< Where work is handed out.
};

/// What the two ends of compressed messages remember of them, as far as it is one worker's; empty
/// where nothing is compressed. What stands place by place is of all servers together, so that
/// another number of them can go on from it.
struct LinkMemory {
  std::vector<float> rest = {};      ///< What pushes have left out so far: `dense` floats, or none.
  std::vector<float> velocity = {};  ///< See ErrorFeedback.
  std::vector<float> has = {};       ///< The parameters that the servers know the worker to have.
  struct Codecs {
    compression::CodecMemory worker = {};  ///< Of what is pushed,
    compression::CodecMemory server = {};  ///< and of what is pulled.
    bool operator==(const Codecs&) const = default;
  };
  std::vector<Codecs> codecs = {};  ///< By server.

  bool empty() const { return codecs.empty(); }
  bool operator==(const LinkMemory&) const = default;
};

/// A worker's end of the parameter servers. Servers of the same host read what is pushed, and write
/// what is pulled, in this worker's memory; nothing is copied to be sent.
///
/// The life of one, in a group of workers:
///
///   construct                      servers are found and greeted
///   chief: initialise()            where has_model() says that there is none
///   push_again()                   where a push of the group before got no answer
///   exchange(), exchange(), …      a step each; others of these between them
///   close()                        or the end of the process, which servers of its host notice
///
/// One thread. The first error stays: whatever asks servers anything later throws it again, but
/// for close(). The next group has a new client.
class ServerClient {
 public:
  /// Finds the servers through the store. All workers do so.
  ServerClient(const ClientOptions& options, cluster::Store& store);
  ~ServerClient();

  /// Whether the servers have a model already, from before this group of workers was formed.
  bool has_model();

  /// The chief, before anybody's first exchange, where the servers have none: the first model.
  void initialise(const ServerModel& model);

  /// The servers' whole model. Of each server it is what it was between two updates; others may
  /// push meanwhile. Any worker, at any time between its exchanges.
  void read_model(ServerModel& model);

  /// Updates the servers had made when this worker last heard of them; the smallest of several.
  std::uint64_t version() const;

  std::span<float> outgoing() const;  ///< What a push brings: `dense` floats.
  std::span<float> incoming() const;  ///< What the last pull brought: `dense` floats.

  /// Returns when all servers have answered. Throws Error naming the server: peer_lost when it is
  /// gone, timeout, or what it refused the request with.
  ExchangeReply exchange(const Exchange& exchange);

  /// The push of the exchange that has thrown, if it was one and not held. Of no use in sync, where
  /// servers undo what not all of them have, and refuse to be given it again.
  const UnansweredPush& unanswered() const;
  /// The same of what outgoing() has now, which was never pushed.
  UnansweredPush unsent(const Exchange& push);

  /// Makes the push of an earlier group again, before anything else is pushed or claimed by anybody
  /// in this one: servers that have it do not apply it again. What outgoing() has is lost.
  void push_again(const UnansweredPush& push);

  /// What both ends remember of this worker's messages. Between its exchanges.
  LinkMemory memory();

  /// Goes on from what memory() returned when the servers' model was what it is now: after a pull,
  /// before anything is pushed. What does not fit (another number of servers, another codec) is
  /// left out.
  void recall(const LinkMemory& memory);

  /// Rows as they are on the servers now, in the order asked for.
  void pull_rows(std::size_t table, std::span<const std::uint32_t> rows, std::span<float> values);

  /// To and from all servers.
  Traffic traffic() const;

  /// Tells the servers that this worker is gone; where an exchange has failed, that it returns in
  /// the next group with what it has taken. Does not throw.
  void close() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::server
