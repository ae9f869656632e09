#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "gossip/boxes/box.h"
#include "gossip/boxes/remote_message.h"
#include "os/private_memory.h"
#include "rpc/rpc.h"

namespace cohort {

/// The sender's end of a box on another host. Of its two boxes one is on its way, the other takes
/// what comes meanwhile. Never waits: things move on whenever something here is called.
class OutgoingBox {
 public:
  struct Options {
    int from = 0;
    int to = 0;
    std::string address = {};
    std::size_t message_bytes = 0;
    Duration timeout = {};
  };

  explicit OutgoingBox(const Options& options);

  bool put(const Parcel& parcel, WhenFull when);
  bool empty();

  /// See PeerBoxes. A parcel may be replaced here, or in the receiver's box: its answer says so.
  double returned() { return std::exchange(returned_, 0); }

  /// Sees whether the call under way is done, and starts the next.
  void advance();

  /// Nothing is on its way and nothing waits.
  bool idle();

  /// Asks the peer now and then, while nothing is on its way, whether it is still there; lost()
  /// knows when the answer has failed to come.
  void ping();

  /// The peer was not to be reached. Then it stays lost, and put() says no.
  bool lost() const { return lost_; }

  std::uint64_t bytes_sent() const { return client_.bytes_sent(); }
  std::uint64_t bytes_received() const { return client_.bytes_received(); }

 private:
  Box& waiting() { return boxes_[waiting_]; }
  void finish_call();
  void start_call();
  void start(const MessageParts& parts);

  Options options_;
  RpcClient client_;
  PrivateMemory memory_;
  std::array<Box, 2> boxes_;
  std::size_t waiting_ = 0;
  WhenFull when_ = WhenFull::replace;
  double returned_ = 0;
  bool lost_ = false;
  bool pinging_ = false;
  Clock::time_point next_ping_ = Clock::time_point::min();
  RemoteHeader header_;
  std::optional<Box::Taken> travelling_;
  std::unique_ptr<RpcClient::Pending> call_;  // Last: it reads what stands above.
};

}  // namespace cohort
