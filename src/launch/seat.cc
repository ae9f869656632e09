#include "launch/seat.h"

#include <fmt/format.h>

#include <numeric>

#include "base/fail.h"
#include "cluster/store.h"
#include "launch/control/view_register.h"
#include "transport/engine_table.h"
#include "transport/inproc/inproc.h"

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

/// The engine of a worker that has nobody to talk to.
class LonelyEngine : public transport::Engine {
 public:
  LonelyEngine() : Engine({.name = "inproc"}) {}

  std::unique_ptr<transport::Transport> connect(Deadline deadline) override {
    return engine_->connect(deadline);
  }
  std::unique_ptr<transport::Engine> group(std::span<const int> ranks, Deadline deadline) override {
    return engine_->group(ranks, deadline);
  }
  transport::SharedRegions* shared_regions() override { return engine_->shared_regions(); }

 private:
  transport::InprocHub hub_{1};
  std::unique_ptr<transport::Engine> engine_ = hub_.engine(0);
};

}  // namespace

std::unique_ptr<cluster::Store> group_store(cluster::Store& store, const ControlBlock& control,
                                            const cluster::View& view) {
  return std::make_unique<cluster::PrefixStore>(
      store, fmt::format("group/{}/", view.generation),
      [&control, generation = view.generation] { return control.is_broken(generation); },
      view.workers);
}

cluster::View RegroupingSeat::first() {
  return wait_for(options_.first_generation);
}

cluster::View RegroupingSeat::next(std::int64_t after, std::int64_t step) {
  card_.ready_step.store(step);
  card_.state.store(TaskState::paused);
  return wait_for(after + 1);
}

// A worker may wait for a group that forms without it, since it was not ready when the launcher
// decided: then it waits for the one after. Only a view without workers, or being sent away, ends
// this; a launcher that dies takes its workers along.
cluster::View RegroupingSeat::wait_for(std::int64_t generation) {
  for (;;) {
    card_.awaited_generation.store(generation);
    // The launcher has its reasons to wait, and takes this process along when it dies.
    const auto view = control_.view().wait_for(generation, Deadline::in(10s));
    if (!view) continue;
    const bool is_last = view->workers.empty() || control_.is_sent_away(worker());
    if (view->rank_of(worker()) || is_last) return *view;
    generation = view->generation + 1;  // It was formed before this worker was ready.
  }
}

// Everything of a group is made anew for it: a store under the group's own keys, in which waiting
// ends when the launcher declares the group broken, and an engine whose ranks are the view's.
Seat::Group RegroupingSeat::join(const cluster::View& view, Deadline deadline) {
  card_.awaited_generation.store(0);
  Group group;
  group.store = group_store(store_, control_, view);
  group.watched = true;
  if (view.world() == 1) {
    group.engine = std::make_unique<LonelyEngine>();
    return group;
  }
  // One worker that was a thread of its own process may have got others, which are processes.
  const bool threads = options_.cluster.replication == "in-graph";
  group.engine =
      transport::make_engine({.name = threads ? transport::kAutoEngine : options_.cluster.engine,
                              .rank = view.rank_of(worker()).value(),
                              .world = view.world(),
                              .address = store_.local_address(),
                              .cores = options_.cores},
                             *group.store, deadline);
  return group;
}

cluster::View OnlySeat::first() {
  cluster::View view{.generation = options_.generation,
                     .workers = std::vector<int>(static_cast<std::size_t>(world_))};
  std::iota(view.workers.begin(), view.workers.end(), 0);
  return view;
}

cluster::View OnlySeat::next(std::int64_t after, std::int64_t) {
  return {.generation = after + 1};
}

Seat::Group OnlySeat::join(const cluster::View& view, Deadline) {
  Group group;
  group.store = group_store(store_, control_, view);
  group.engine = std::move(engine_);
  group.watched = options_.watched;
  return group;
}

}  // namespace cohort::launch
