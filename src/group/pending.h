#pragma once

#include <optional>

#include "base/deadline.h"
#include "group/call.h"

namespace cohort::group {

/// A call that was started: a collective, which goes on in a thread of its own (group/work_queue.h),
/// or a message (group/point_to_point.h). Used by one thread at a time, and not after its group.
class Pending {
 public:
  explicit Pending(const Call& call) : call_(call) {}
  virtual ~Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  const Call& call() const { return call_; }

  /// Returns when it is done. Throws what it failed with, also when asked again. Without a deadline
  /// it waits as long as the group lets a call wait; with one it throws Error(timeout) where the
  /// call is not done by then. A collective goes on all the same and may be waited for again; of a
  /// message nobody knows how much has moved, so it has failed.
  virtual void wait(std::optional<Deadline> deadline) = 0;

 private:
  const Call call_;
};

}  // namespace cohort::group
