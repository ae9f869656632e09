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
  std::shared_ptr<transport::Engine> engine;
  std::function<std::unique_ptr<cluster::Store>()> connect;
};

/// The same between some of the ranks, which all call it with the same list and the same words for
/// where in the store they meet. It keeps the whole alive.
Membership part_of(const Membership& whole, const std::vector<int>& ranks,
                   const std::string& prefix, Deadline deadline);

}  // namespace cohort::group
