#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"
#include "os/memory.h"
#include "os/peer_watch.h"
#include "transport/transport.h"

namespace cohort::transport {

/// Memory that all ranks of an engine can touch: what it offers where all share a host. Owned by
/// the engine whose shared_regions() it is.
class SharedRegions {
 public:
  virtual ~SharedRegions() = default;

  /// Zeroed memory, the same for every rank. All ranks call it in the same order with the same
  /// size. It lives as long as the engine.
  virtual std::span<std::byte> region(std::size_t bytes, Deadline deadline) = 0;

  /// The same, of memory that may outlive the engine: `memory` is this rank's hold on it, empty
  /// where it cannot. Where rank 0 comes with memory (of a group before), that is used: what stands
  /// in it stays, it grows or gives back what is too much, and what is new is zeroed.
  virtual std::span<std::byte> lasting_region(std::size_t bytes,
                                              std::shared_ptr<os::SharedMemory>& memory,
                                              Deadline deadline) {
    memory.reset();
    return region(bytes, deadline);
  }

  /// Knows which of the ranks' processes have died.
  virtual os::PeerWatch watch() = 0;
};

/// What is known of an engine when it is made, and stays so: one rank's place among the others.
struct EngineFacts {
  std::string name;  ///< One of engine_table.h.
  int rank = 0;
  /// The host of every rank, counted from 0 in the order of the ranks: equal numbers share one.
  std::vector<int> hosts = {0};
  /// Of this host, on which ranks of other hosts can reach it; empty where all share one.
  std::string address = {};
  /// Whether sending costs this rank's processor little (the network does the work), so that it
  /// pays to send in the background of a computation.
  bool sends_in_background = false;
};

/// A way for one rank to reach the others, made anew for every group of workers (launch/seat.h), on
/// which everything above stands: it makes transports (messages), regions (memory) and groups (the
/// same again between some ranks). What it is does not change (EngineFacts), so only what it does is
/// virtual.
///
/// A *world* is all ranks of an engine, 0 to world() - 1. The ranks have to act alike without
/// asking each other: calls that all of them must make (connect, region, group of the same ranks)
/// are counted on each rank, and equal counts belong together. One thread at a time; what it makes
/// must go before it.
class Engine {
 public:
  virtual ~Engine() = default;

  const EngineFacts& facts() const { return facts_; }
  const std::string& name() const { return facts_.name; }
  int rank() const { return facts_.rank; }
  int world() const { return static_cast<int>(facts_.hosts.size()); }
  const std::vector<int>& hosts() const { return facts_.hosts; }
  const std::string& address() const { return facts_.address; }
  bool sends_in_background() const { return facts_.sends_in_background; }

  /// A new, independent group of connections. All ranks call it in the same order.
  virtual std::unique_ptr<Transport> connect(Deadline deadline) = 0;

  /// The same way between some of the ranks: rank i of the group is ranks[i] here. Exactly these
  /// ranks call it, with the same list; who makes several groups of the same ranks makes them in
  /// the same order as the others. Groups may overlap, and one rank alone is a group. This engine
  /// must outlive it. Throws Error(invalid) for a list that is none.
  virtual std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline deadline) = 0;

  /// Null where ranks do not share memory.
  virtual SharedRegions* shared_regions() = 0;

 protected:
  explicit Engine(EngineFacts facts) : facts_(std::move(facts)) {}

 private:
  EngineFacts facts_;
};

/// What it takes to make one. Rank and world are those of the group of workers; the same on all
/// ranks but for `rank` and `address`.
struct EngineOptions {
  /// Or one of engine_table.h. Threads of one process use an InprocHub.
  std::string name = "auto";
  int rank = 0;
  int world = 1;
  std::string address;  ///< Of this host, on which peers of other hosts can reach it.
  int cores = 1;        ///< That the local ranks may use, counted before pinning.
};

/// Ranks meet in `store`, agree on an engine that works for all of them and get it. With auto that
/// is the first of engine_table.h that can work with these ranks. Throws Error(unsupported) where
/// the engine asked for cannot, saying why.
std::unique_ptr<Engine> make_engine(const EngineOptions& options, cluster::Store& store,
                                    Deadline deadline);

}  // namespace cohort::transport
