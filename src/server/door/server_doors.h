#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/store.h"
#include "os/memory.h"
#include "os/peer_watch.h"
#include "os/shared_wait.h"
#include "rpc/rpc.h"
#include "server/door/server_desk.h"
#include "server/wire/door.h"
#include "server/wire/server_address.h"
#include "server/wire/wire.h"

namespace cohort::server {

/// What a request is answered with that the process has no room for.
inline Error no_memory() {
  return Error(ErrorCode::no_space, "the server has no memory left for this request");
}

/// A server's two doors: the ways on which requests come to its desk and replies go back.
///
///   worker of this host ── shared memory ──► MemoryDoor ─┐
///                                                        ├─► ServerDesk
///   anybody ────────────── gRPC ───────────► RpcDoor ────┘
///
/// The desk's thread (run_server()) sleeps at the bell of the memory door, which both doors ring,
/// and then calls take_all() of both. All but RpcDoor::put(), and the copies of another server's
/// shard, runs on that thread. An exchange that comes before the server has a model waits in its
/// door until there is one, one of each worker.

/// The server's end of the memory it shares with the workers of its host. Requests are read, and
/// replies written, in the workers' memory.
class MemoryDoor {
 public:
  /// What workers give it, it takes from the store, which must outlive it.
  MemoryDoor(int workers, int server, ServerDesk& desk, cluster::Store& store);
  /// Whoever still waits for an answer is told that none will come.
  ~MemoryDoor();

  /// For the workers of this host.
  const os::SharedMemory& memory() const { return memory_; }
  os::SharedEvent& bell() const { return door_.bell(); }

  /// A piece of memory that the worker has given to this server. Throws at once where it has not.
  os::SharedMemory take_memory(int worker, std::uint64_t number);

  /// Maps the memory of a worker that says hello, perhaps again with larger side memory.
  void greet(int worker, const Hello& hello);

  /// Whether a request waits to be taken.
  bool has_visitors() const;
  /// Takes every request that waits.
  void take_all();

 private:
  class Guest;

  os::SharedMemory memory_;
  Door door_;
  ServerDesk& desk_;
  const int server_;
  cluster::Store& store_;
  std::vector<std::unique_ptr<Guest>> guests_;  // By worker; null until its hello.
};

/// The server's end of its gRPC calls: requests of workers elsewhere, and of everybody what is said
/// only now and then (hello, the first model, the wish to read the model). Calls arrive on gRPC's
/// threads and wait here for the desk's. A request whose connection was lost may come again, with
/// the same number: it gets the reply of the first and does nothing twice.
class RpcDoor {
 public:
  RpcDoor(const ServerOptions& options, const cluster::Pass& pass, ServerDesk& desk,
          MemoryDoor& memory);
  ~RpcDoor();

  std::string address() const { return server_.address(); }

  bool has_visitors() const { return waiting_.load(std::memory_order_acquire) > 0; }
  void take_all();

  /// Whether this worker was ever heard of, here or through the memory.
  bool has_come(int worker) const { return come_[static_cast<std::size_t>(worker)]; }

  /// A worker of this host whose process has ended though it has not left, or -1.
  int dead_worker() const;

 private:
  class Caller;
  using Floats = std::vector<float>;

  /// An exchange from before the first model.
  struct Early {
    int worker = 0;
    std::uint64_t number = 0;
    std::unique_ptr<rpc::RpcCall> call;
  };

  void allow_messages_of_model();
  void put(std::unique_ptr<rpc::RpcCall> call);
  void take_replica_call(rpc::RpcCall& call);
  void take(std::unique_ptr<rpc::RpcCall> call);
  void answer(std::unique_ptr<rpc::RpcCall> call);
  void answer_now(rpc::RpcCall& call, const Request& request);
  void check(const rpc::RpcCall& call, const Request& request) const;
  static void reply(rpc::RpcCall& call, rpc::Bytes bytes);
  void take_exchange(std::unique_ptr<rpc::RpcCall> call, Request&& request);
  void complete(Request& request, Caller& caller);
  void keep_early(std::unique_ptr<rpc::RpcCall> call, const Request& request);
  void take_loss(rpc::RpcCall& call, int worker);
  void take_hello(int worker, const Hello& hello);

  // Whole models (rpc_models.cc).
  void take_first_model(rpc::RpcCall& call, const Request& request);
  void take_read(rpc::RpcCall& call, const Request& request);
  void take_read_part(rpc::RpcCall& call, const Request& request);
  void take_remember(rpc::RpcCall& call, int worker);
  void take_recall(rpc::RpcCall& call, const Request& request);
  std::shared_ptr<Floats> new_copy();
  std::span<float> memory_for_model(const Request& request);

  ServerDesk& desk_;
  MemoryDoor& memory_;
  std::vector<bool> come_;                  // By worker: anything of it has come.
  std::vector<os::PeerWatch> watches_;      // By worker.
  std::vector<std::vector<float>> copies_;  // With compression: what each worker has.
  bool compressed_;
  std::vector<Early> early_;  // One of a worker, in the order in which they came.

  std::vector<std::shared_ptr<Caller>> callers_;  // The last of each worker.

  std::vector<std::shared_ptr<Floats>> model_copies_;  // By worker: what it is just reading.
  std::shared_ptr<Floats> spare_copy_;                 // Kept, because fresh memory is slow.
  int model_reader_ = -1;                              // Who read a model last,
  std::uint64_t model_number_ = 0;
  os::SharedMemory model_memory_;  // and where to.

  std::mutex replica_mutex_;  // Guards the memory of the copy this server keeps.
  const std::span<std::byte> replica_memory_;
  const std::int64_t generation_;
  const std::size_t limit_;  // Of messages, while there is no model.

  std::mutex mutex_;  // Guards what gRPC's threads touch.
  std::deque<std::unique_ptr<rpc::RpcCall>> calls_;
  std::atomic<int> waiting_ = 0;
  rpc::RpcServer server_;  // Last: its threads use what stands above.
};

}  // namespace cohort::server
