#pragma once

#include <string>

#include "base/deadline.h"
#include "cluster/store.h"

namespace cohort {

/// One decision for a group, of which anybody may be lost at any moment: all members that are left
/// take what they have made together, or none of them does. A sum alone cannot say that, since its
/// last messages reach one member and not the other.
///
/// Every member says arrive() once it has the result and has not used it yet, then waits for the
/// others in its own way. Who learns that all have arrived uses the result. Who learns that one is
/// lost asks all_arrived(), and does as that says. The decision falls once, in the store: by the
/// last to arrive, or by the first who asks before that.
class AllOrNone {
 public:
  /// `key` is this decision's own.
  AllOrNone(Store& store, std::string key, int members)
      : store_(store), key_(std::move(key)), members_(members) {}

  void arrive();

  /// Whether all had arrived before anybody asked: the same answer for all. Throws Error(timeout)
  /// when the one who was to write it down was lost just then; nobody has an answer in that case,
  /// and all may take it for a no.
  bool all_arrived(Deadline deadline);

 private:
  bool decides_first();

  Store& store_;
  std::string key_;
  int members_;
};

}  // namespace cohort
