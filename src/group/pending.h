#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/deadline.h"
#include "group/call.h"

namespace cohort::group {

/// A call that was started: a collective, which goes on in the thread of a WorkQueue, or a message
/// (group/point_to_point.h). Used by one thread at a time, and not after its group.
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

/// Makes one call after the other in a thread of its own, which is started with the first of them.
/// One thread at a time hands calls in; the destructor waits until all are done.
class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// `work` is what makes the call; what it holds on to goes as soon as it is done.
  std::shared_ptr<Pending> start(const Call& call, std::function<void()> work);

  /// Whether nothing is being done or waits to be.
  bool idle();

 private:
  class Item;

  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Item>> items_;  // The first is being done.
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace cohort::group
