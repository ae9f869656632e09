#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gossip/boxes/box.h"
#include "gossip/boxes/remote_message.h"
#include "os/private_memory.h"
#include "rpc/rpc.h"

namespace cohort {

/// The boxes of one worker for what others send it. Threads of its server put, its own thread
/// takes. A parcel that finds its box busy or full waits unanswered until the next take() of that
/// sender, which keeps the sender from sending more.
class IncomingBoxes {
 public:
  IncomingBoxes(const std::vector<int>& senders, std::size_t message_bytes);

  /// Answers the call, or keeps it. Throws Error, and leaves the call, where it cannot be put.
  void put(const RemoteHeader& header, std::unique_ptr<RpcCall>& call);

  std::optional<Box::Taken> take(int sender);

 private:
  struct Slot {
    PrivateMemory memory;
    Box box;
    std::unique_ptr<RpcCall> held;
  };

  static bool try_put(Box& box, const RemoteHeader& header, RpcCall& call);
  void put_held(Slot& slot);

  std::map<int, Slot> slots_;
  std::mutex mutex_;  // Guards every `held`.
};

}  // namespace cohort
