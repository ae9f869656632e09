#pragma once

#include <cohort/job.h>

#include <memory>

#include "cluster/tcp_store.h"
#include "launch/control/control_block.h"
#include "launch/seat.h"

namespace cohort {

/// What the tasks of one group say to each other in the store, apart from other groups. Waiting
/// there ends when the group is broken.
std::unique_ptr<Store> group_store(Store& store, const ControlBlock& control, std::int64_t epoch);

/// A worker whose launcher forms groups: it is told of them by the control channel, and tells in
/// its slot when it waits for one.
class RegroupingSeat : public Seat {
 public:
  struct Options {
    const ClusterOptions& cluster;
    int worker = 0;
    std::int64_t first_epoch = 1;  ///< The group it waits for first.
    int cores = 1;
  };

  RegroupingSeat(const Options& options, const ControlBlock& control, TcpStore& store)
      : options_(options), control_(control), slot_(control.slot(options.worker)), store_(store) {}

  int worker() const override { return options_.worker; }
  View first() override;
  bool has_next() const override { return true; }
  View next(std::int64_t after, std::int64_t step) override;
  Group join(const View& view, Deadline deadline) override;

 private:
  View wait_for(std::int64_t epoch);

  Options options_;
  const ControlBlock& control_;
  WorkerSlot& slot_;
  TcpStore& store_;
};

/// A worker of the only group there is: threads of one process, or launchers of several hosts.
class OnlySeat : public Seat {
 public:
  struct Options {
    std::int64_t epoch = 1;  ///< Counts how often the group was started.
    bool watched = false;    ///< See Seat::Group.
  };

  OnlySeat(const Options& options, std::unique_ptr<Engine> engine, const ControlBlock& control,
           Store& store)
      : options_(options),
        rank_(engine->rank()),
        world_(engine->world()),
        engine_(std::move(engine)),
        control_(control),
        store_(store) {}

  int worker() const override { return rank_; }
  View first() override;
  bool has_next() const override { return false; }
  View next(std::int64_t after, std::int64_t step) override;
  Group join(const View& view, Deadline deadline) override;

 private:
  Options options_;
  int rank_;
  int world_;
  std::unique_ptr<Engine> engine_;
  const ControlBlock& control_;
  Store& store_;
};

}  // namespace cohort
