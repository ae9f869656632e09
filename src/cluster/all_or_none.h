#pragma once

#include <string>
#include <utility>

#include "cluster/store.h"

namespace cohort::cluster {

/// One decision for a group, of which anybody may be lost at any moment: all members that are left
/// take what they have made together, or none of them does. A sum alone cannot say that, since its
/// last messages reach one member and not the other.
///
///   each member                                  in the store
///   has the result, has not used it yet
///   arrive()                                     <key>/arrived += 1; whoever makes it `members`:
///                                                <key>/decision = "all", unless it is set
///   waits for the others in its own way
///   all_arrived()                                <key>/decision = "none", unless it is set;
///   uses the result, or drops it                 the answer is what stands there
///
/// So the decision falls once: by the last to arrive, or by the first who stops waiting before
/// that. It survives every member; it needs the store, which ends with the run. One that arrives
/// after "none" was decided learns so from all_arrived(). Each object belongs to one member and
/// thread.
class AllOrNone {
 public:
  /// `key` is this decision's own, the same for all `members` of it. The store must outlive this.
  AllOrNone(Store& store, std::string key, int members)
      : store_(store), key_(std::move(key)), members_(members) {}

  /// Once. A store that does not answer in time is no error here: whether this member was counted
  /// all_arrived() will tell. Throws Error(peer_lost) when the store is gone.
  void arrive();

  /// Whether all had arrived before anybody asked: the same answer for all who get one. A store
  /// that is slow is asked again; throws Error(peer_lost) when it is gone, and with it the run.
  bool all_arrived();

 private:
  Store& store_;
  std::string key_;
  int members_;
};

}  // namespace cohort::cluster
