#pragma once

#include <cohort/job.h>

#include <memory>

#include "cluster/membership.h"
#include "cluster/socket_store.h"
#include "launch/control/control_block.h"
#include "transport/engine.h"

// A worker's end of the groups (launch/groups.h is the launcher's): with whom it trains, and how it
// comes from one group to the next.
//
//   first() ──► view ──► join(view) ──► trains ──► next(generation, steps) ──► view ──► …
//                 │                                        │
//                 └── it is not in the view: it ends  ◄────┘
//
// All calls come from the worker's own thread. first() and next() wait without a deadline: the
// launcher has its reasons, and takes its workers along when it dies.

namespace cohort::launch {

/// One worker's place in the run: tells it with whom it trains.
class Seat {
 public:
  virtual ~Seat() = default;

  /// Its number; it keeps it in every group.
  virtual int worker() const = 0;

  /// The first group. Waits for it.
  virtual cluster::View first() = 0;

  /// Whether there may be another group when this one breaks.
  virtual bool has_next() const = 0;

  /// Says that this worker has left group `after`, with the state of so many steps (-1: it has
  /// none), and waits for the next group: one that it is in, or if there will be none the newest.
  virtual cluster::View next(std::int64_t after, std::int64_t step) = 0;

  /// What the workers of one group have in common.
  struct Group {
    std::unique_ptr<cluster::Store> store;
    std::unique_ptr<transport::Engine> engine;  ///< Uses the store, so it is destroyed first.
    bool watched = false;  ///< Waiting in the store ends when one of the group is lost.
  };
  /// All workers of the group come together. Throws Error where one does not come in time.
  virtual Group join(const cluster::View& view, Deadline deadline) = 0;
};

/// What the tasks of one group say to each other in the store, apart from other groups (their keys
/// begin with "group/<generation>/"). Waiting there ends when the group is broken. Both arguments
/// outlive it.
std::unique_ptr<cluster::Store> group_store(cluster::Store& store, const ControlBlock& control,
                                            const cluster::View& view);

/// A worker whose launcher forms groups: it is told of them by the control channel, and tells in
/// its card when it waits for one. All that is given outlives it.
class RegroupingSeat : public Seat {
 public:
  struct Options {
    const ClusterOptions& cluster;
    int worker = 0;
    std::int64_t first_generation = 1;  ///< The group it waits for first.
    int cores = 1;                      ///< Of this host, that its workers may use.
  };

  RegroupingSeat(const Options& options, const ControlBlock& control, cluster::SocketStore& store)
      : options_(options), control_(control), card_(control.card(options.worker)), store_(store) {}

  int worker() const override { return options_.worker; }
  cluster::View first() override;
  bool has_next() const override { return true; }
  cluster::View next(std::int64_t after, std::int64_t step) override;
  Group join(const cluster::View& view, Deadline deadline) override;

 private:
  cluster::View wait_for(std::int64_t generation);

  Options options_;
  const ControlBlock& control_;
  WorkerCard& card_;
  cluster::SocketStore& store_;
};

/// A worker of the only group there is: threads of one process, or launchers of several hosts. When
/// that group breaks the worker ends; its launcher may start all of it again.
class OnlySeat : public Seat {
 public:
  struct Options {
    std::int64_t generation = 1;  ///< Counts how often the group was started.
    bool watched = false;         ///< See Seat::Group.
  };

  /// `engine` says which rank of how many this worker has.
  OnlySeat(const Options& options, std::unique_ptr<transport::Engine> engine,
           const ControlBlock& control, cluster::Store& store)
      : options_(options),
        rank_(engine->rank()),
        world_(engine->world()),
        engine_(std::move(engine)),
        control_(control),
        store_(store) {}

  int worker() const override { return rank_; }
  cluster::View first() override;
  bool has_next() const override { return false; }
  cluster::View next(std::int64_t after, std::int64_t step) override;
  Group join(const cluster::View& view, Deadline deadline) override;

 private:
  Options options_;
  int rank_;
  int world_;
  std::unique_ptr<transport::Engine> engine_;  // Until join(), which can be called once.
  const ControlBlock& control_;
  cluster::Store& store_;
};

}  // namespace cohort::launch
