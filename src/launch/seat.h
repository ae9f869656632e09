#pragma once

#include <memory>

#include "cluster/store.h"
#include "cluster/view.h"
#include "transport/engine.h"

namespace cohort {

/// One worker's place in the run: tells it with whom it trains.
class Seat {
 public:
  virtual ~Seat() = default;

  /// Its number; it keeps it in every group.
  virtual int worker() const = 0;

  /// The first group. Waits for it.
  virtual View first() = 0;

  /// Whether there may be another group when this one breaks.
  virtual bool has_next() const = 0;

  /// Says that this worker has left group `after`, with the state of so many steps (-1: it has
  /// none), and waits for the next group: one that it is in, or if there will be none the newest.
  virtual View next(std::int64_t after, std::int64_t step) = 0;

  /// What the workers of one group have in common.
  struct Group {
    std::unique_ptr<Store> store;
    std::unique_ptr<Engine> engine;  // Uses the store, so it goes first.
    bool watched = false;            ///< Waiting in the store ends when one of the group is lost.
  };
  /// All workers of the group come together.
  virtual Group join(const View& view, Deadline deadline) = 0;
};

}  // namespace cohort
