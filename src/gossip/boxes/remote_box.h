#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gossip/boxes/box.h"
#include "gossip/boxes/remote_message.h"
#include "os/memory.h"
#include "rpc/rpc.h"

namespace cohort::gossip {

/// The two ends of a box between workers that share no memory.
///
///   sender: OutgoingBox                        receiver: IncomingBoxes
///   put ──▶ [waiting] ──▶ [travelling] ══ call ══▶ [held] ──▶ [box] ──▶ take
///             one parcel     one parcel       ◀══ answer ══  once it is in the box
///
/// The answer comes when the parcel is in the receiver's box, and not before: while the box is full
/// and must not be replaced or added to, or is being read, the call is *held* unanswered. So there
/// is never more than one parcel on its way from one worker to another, and they arrive in order.
/// What the sender puts meanwhile is combined in `waiting` as WhenFull says. The answer brings back
/// the weight of the parcel that this one has replaced (PutReply).
///
/// A call that fails (deadline, connection, a server that is gone) makes the peer lost for good.

/// The sender's end. Of its two boxes one is on its way, the other takes what comes meanwhile.
/// Never waits: things move on whenever something here is called. One thread at a time.
class OutgoingBox {
 public:
  struct Options {
    int from = 0;
    int to = 0;
    std::string address = {};
    cluster::Pass pass;
    std::size_t message_bytes = 0;
    Duration timeout = {};  ///< For an answer that nothing holds up; a call may take longer.
  };

  explicit OutgoingBox(const Options& options);

  /// True: it is in `waiting`, perhaps already on its way.
  bool put(const Parcel& parcel, WhenFull when);
  /// Nothing waits; something may be on its way.
  bool empty();

  /// As in PeerBoxes. A parcel may be replaced here, or in the receiver's box: its answer says so.
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

  Traffic traffic() const { return client_.traffic(); }

 private:
  Box& waiting() { return boxes_[waiting_]; }
  void finish_call();
  void take_answer(const PutReply& answer);
  void start_call();
  void start(const rpc::MessageParts& parts);

  Options options_;
  rpc::RpcClient client_;
  os::PrivateMemory memory_;
  std::array<Box, 2> boxes_;
  std::size_t waiting_ = 0;            // Which of the two; the other one travels, or is empty.
  WhenFull when_ = WhenFull::replace;  // Of the last put().
  double returned_ = 0;
  double there_ = 0;  // Weight that has arrived and may still lie in the receiver's box.
  bool lost_ = false;
  bool pinging_ = false;  // The call under way is a ping.
  Clock::time_point next_ping_ = Clock::time_point::min();
  RemoteHeader header_;  // Of the call under way, which reads it where it is.
  std::optional<Box::Taken> travelling_;
  std::unique_ptr<rpc::RpcClient::Pending> call_;  // Last: it reads what stands above.
};

/// The receiver's end of all boxes to one worker. Threads of its server put, its own thread takes.
/// A parcel that finds its box busy or full waits unanswered until the next take() of that sender,
/// which keeps the sender from sending more.
class IncomingBoxes {
 public:
  IncomingBoxes(const std::vector<int>& senders, std::size_t message_bytes);

  /// Answers the call, or keeps it. Throws Error, and leaves the call, where it cannot be put.
  void put(const RemoteHeader& header, std::unique_ptr<rpc::RpcCall>& call);

  /// As in PeerBoxes; lets in what is held.
  std::optional<Box::Taken> take(int sender);

 private:
  struct Slot {
    os::PrivateMemory memory;
    Box box;
    std::unique_ptr<rpc::RpcCall> held;  // A put that found no room; at most one, see above.
  };

  static bool try_put(Box& box, const RemoteHeader& header, rpc::RpcCall& call);
  void put_held(Slot& slot);

  std::map<int, Slot> slots_;  // By sender; none is added later.
  std::mutex mutex_;           // Guards every `held`.
};

}  // namespace cohort::gossip
