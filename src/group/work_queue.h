#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "group/pending.h"

namespace cohort::group {

/// Does one call after the other in a thread of its own, which is started with the first of them.
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
