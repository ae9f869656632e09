#pragma once

#include <cohort/error.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"
#include "group/array.h"
#include "group/board.h"
#include "group/fabric.h"
#include "group/pending.h"
#include "group/point_to_point.h"
#include "group/wait_watch.h"
#include "transport/engine.h"

namespace cohort::group {

/// What a rank needs to be in a group: the way to the others, and the store over which they tell
/// each other what goes wrong. `connect` makes a connection to it for one user of it.
struct Membership {
  /// Keeps what the engine stands on, so it comes first: members go in the reverse of their order.
  std::function<std::unique_ptr<cluster::Store>()> connect;
  std::shared_ptr<transport::Engine> engine;
  /// Which of these ranks serves the store, so that where that is gone it has gone too; -1: none.
  int store_rank = -1;
  /// Called when a group of it is over because something went wrong; may be empty. Any thread.
  std::function<void()> on_failure = {};
};

struct CommunicatorOptions {
  /// For how long a call waits for ranks that live and are not stuck.
  Timeout timeout = std::chrono::minutes(10);
  /// How long a wait lasts at first before this rank tells the others of it.
  Duration patience = std::chrono::seconds(1);
  int cores = 1;  ///< That the ranks of this host share, counted before pinning.
};

/// The collectives of a group of ranks on users' tensors, and messages between two of them.
///
/// All ranks make the same collectives in the same order. Every call is compared first: its number,
/// operation, type and shapes (group/call.h); where ranks call different things, all of them get the
/// same Error(invalid), which names ranks and calls. A send and its receive are compared with each
/// other. Where one rank is in a collective and another in a send or receive, both wait for a call
/// that is never made; that is found out soon (group/wait_watch.h). A rank that has died or left is
/// an Error(peer_lost) about it. After any of these the group is over: every later call throws the
/// same, on every rank. Arrays in memory of empty() have any content then, and others may still write
/// to them. A call whose arguments are wrong by themselves throws Error(invalid) before it says
/// anything to anybody, and may be made again.
///
/// start_…() returns at once: collectives then go on in a thread of their own, in the order of the
/// calls, and later ones wait for their turn. Who leaves before what it started is done breaks it
/// off. One thread at a time uses a group and what it started.
class Communicator {
 public:
  /// All ranks make theirs at the same time.
  Communicator(Membership membership, const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return membership_.engine->rank(); }
  int world() const { return membership_.engine->world(); }
  const transport::Engine& engine() const { return *membership_.engine; }
  Duration timeout() const { return options_.timeout.usual(); }

  /// Connections between the ranks, which all call it, for what they send each other in other ways.
  std::unique_ptr<transport::Transport> connect() {
    return membership_.engine->connect(options_.timeout.deadline());
  }

  void barrier();
  void all_reduce(std::vector<Array> arrays, const Combine& combine);
  std::shared_ptr<Pending> start_all_reduce(std::vector<Array> arrays, const Combine& combine);
  void broadcast(std::vector<Array> arrays, int root);
  std::shared_ptr<Pending> start_broadcast(std::vector<Array> arrays, int root);

  /// `make(rows)` makes the arrays to be filled, one for every rank with that many rows, which may
  /// differ between ranks while the other dimensions do not.
  using MakeParts = std::function<std::vector<Array>(std::span<const std::int64_t> rows)>;
  void all_gather(const Array& given, const MakeParts& make);

  /// `given` has world() times as many rows as `out`, which becomes the reduction of everybody's
  /// part for this rank. They do not overlap.
  void reduce_scatter(const Array& given, const Array& out, const Combine& combine);
  /// Both have the same shape, whose rows are cut into world() equal parts: part r of `taken`
  /// becomes rank r's part for this rank. They do not overlap.
  void all_to_all(const Array& given, const Array& taken);

  /// An array that nobody else has, not set to anything. Where all ranks share a host, collectives
  /// work on arrays in such memory (parts of it, lists of them) without copying, if they stand in the
  /// same place on all ranks: those of the same calls of empty(). The hold keeps it, beyond the group
  /// too; what all ranks have let go of is handed out again. Error(no_space) on all ranks where one
  /// of them has no room; the group goes on then.
  Array empty(collective::ElementType type, std::vector<std::int64_t> shape);

  /// A send is done when its receive has been called and the bytes may be used again.
  void send(const Array& array, int peer);
  void receive(const Array& array, int peer);
  std::shared_ptr<Pending> start_send(const Array& array, int peer);
  std::shared_ptr<Pending> start_receive(const Array& array, int peer);

  /// All ranks call it. Those with the same color become a group, in the order of their keys, and of
  /// their ranks where these are equal. Null for who gives no color.
  std::shared_ptr<Communicator> split(std::optional<int> color, int key);

  /// The group is over, for a reason that the others cannot see by themselves: something has gone
  /// wrong on this rank between two calls. They get it in the call they are in, or in their next, and
  /// every later call throws it here. Returns why the group is over, which is what was told first:
  /// `reason` may be what another rank's has led to.
  Error end(const Error& reason);

  /// For what was started here; see Pending::wait.
  void wait(Pending& pending, std::optional<Deadline> deadline = std::nullopt);

 private:
  /// What makes a call, which has its number then.
  using Body = std::function<void(const Call& call, Deadline deadline)>;

  Call broadcast_call(std::span<const Array> arrays, int root) const;
  Body reduction(std::vector<Array> arrays);
  Body broadcasting(std::vector<Array> arrays);
  std::vector<int> members_of(std::span<const Call> calls) const;
  std::shared_ptr<Pending> start_message(Operation operation, const Array& array, int peer);

  void run(Call call, const Body& body);
  std::shared_ptr<Pending> start(Call call, Body body);
  void make(const Call& call, const Body& body);

  void check_rank(int rank) const;
  void check_usable() const;
  void guarded(const Call& call, const std::function<void()>& body);
  [[noreturn]] void end_with(const Error& error, const Call& call);
  Error end_for(const Error& error);
  Error reason_after(const Error& error);
  Error as_seen_without_board(const Error& error);
  void let_others_hear(const Error& reason);
  void leave() noexcept;

  const Membership membership_;
  const CommunicatorOptions options_;
  Board board_;
  const std::unique_ptr<Fabric> fabric_;
  PointToPoint messages_;
  mutable std::mutex mutex_;
  std::optional<Error> failure_;  // Why the group is over. Guarded by mutex_.
  std::mutex leaving_;            // Of leave() alone.
  std::once_flag heard_;          // Of let_others_hear() alone.
  WaitWatch watch_;
  WorkQueue queue_;  // Last, so that what it does ends before what that uses goes.
};

}  // namespace cohort::group
