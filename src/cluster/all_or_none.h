#pragma once

#include <string>
#include <utility>

#include "cluster/store.h"

namespace cohort {

/// One decision for a group, of which anybody may be lost at any moment: all members that are left
/// take what they have made together, or none of them does. A sum alone cannot say that, since its
/// last messages reach one member and not the other.
///
/// Every member says arrive() once it has the result and has not used it yet, then waits for the
/// others in its own way, and when that ends, well or not, asks all_arrived() and does as that
/// says. The decision falls once, in the store: by the last to arrive, or by the first who asks
/// before that.
class AllOrNone {
 public:
  /// `key` is this decision's own.
  AllOrNone(Store& store, std::string key, int members)
      : store_(store), key_(std::move(key)), members_(members) {}

  void arrive();

  /// Whether all had arrived before anybody asked: the same answer for all who get one. A store
  /// that is slow is asked again; throws Error(peer_lost) when it is gone, and with it the run.
  bool all_arrived();

 private:
  Store& store_;
  std::string key_;
  int members_;
};

}  // namespace cohort
