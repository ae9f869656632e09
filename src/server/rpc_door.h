#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "cluster/shared_wait.h"
#include "rpc/rpc.h"
#include "server/memory_door.h"
#include "server/server_desk.h"

namespace cohort {

/// The server's end of its gRPC calls: requests of workers elsewhere, and what everybody says only
/// once (hello, the first model). Calls arrive on gRPC's threads and wait here for the desk's.
class RpcDoor {
 public:
  RpcDoor(const ServerOptions& options, ServerDesk& desk, MemoryDoor& memory);
  ~RpcDoor();

  std::string address() const { return server_.address(); }

  bool has_visitors() const { return waiting_.load(std::memory_order_acquire) > 0; }
  void take_all();

  /// Whether this worker was ever heard of, here or through the memory.
  bool has_come(int worker) const { return come_[static_cast<std::size_t>(worker)]; }

 private:
  class Caller;

  void put(std::unique_ptr<RpcCall> call);
  void take(std::unique_ptr<RpcCall> call);
  void take_exchange(std::unique_ptr<RpcCall> call, const WireRequest& wire);
  Request request_of(const WireRequest& wire, Caller& caller);

  ServerDesk& desk_;
  MemoryDoor& memory_;
  std::vector<bool> come_;
  std::vector<std::vector<float>> copies_;  // With compression: what each worker has.
  bool compressed_;
  std::deque<std::unique_ptr<RpcCall>> early_;  // From before the first model.

  std::vector<std::shared_ptr<Caller>> callers_;  // The last of each worker.

  std::mutex mutex_;  // Guards what gRPC's threads touch.
  std::deque<std::unique_ptr<RpcCall>> calls_;
  std::atomic<int> waiting_ = 0;
  RpcServer server_;  // Last: its threads use what stands above.
};

}  // namespace cohort
