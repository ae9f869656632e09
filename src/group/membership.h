#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"
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

/// The same between some of the ranks, which all call it with the same list and the same words for
/// where in the store they meet. It keeps the whole alive.
Membership part_of(const Membership& whole, const std::vector<int>& ranks,
                   const std::string& prefix, Deadline deadline);

}  // namespace cohort::group
