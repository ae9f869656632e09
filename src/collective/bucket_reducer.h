#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/activity.h"
#include "base/phases.h"
#include "collective/executor.h"
#include "collective/gradient_buckets.h"

namespace cohort {

/// All-reduces the buckets of one flat buffer in their order, on a thread of its own (`background`)
/// or, without one, when waited for. Buckets may become ready in any order; they travel in the
/// order of their numbers, which is the same on every rank, so ranks never wait in a circle.
class BucketReducer {
 public:
  struct Options {
    std::string algorithm = "auto";
    std::vector<int> hosts = {};  ///< Of the ranks; see Engine::hosts.
    Duration timeout;
    bool background = false;
    PhaseClock* phases = nullptr;  ///< Told of what travels in the background.
    Activity* activity = nullptr;  ///< Where waits for others are shown; may be null.
    /// Takes the place of the all-reduce for a parameter that travels apart, on the same thread and
    /// at the same place in the order of messages; called with its bucket.
    std::function<void(std::size_t bucket, Deadline deadline)> exchange_apart = {};
  };

  BucketReducer(Transport& transport, std::span<float> buffer, GradientBuckets buckets,
                Options options);
  ~BucketReducer();
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  const GradientBuckets& buckets() const { return buckets_; }

  void begin_step();
  /// The gradient of `parameter` is in the buffer.
  void parameter_ready(std::size_t parameter);
  /// Returns when all buckets, or the first so many, are reduced. Rethrows what went wrong on the
  /// other thread.
  void wait() { wait_for_first(buckets_.segments.size()); }
  void wait_for_first(std::size_t buckets);

 private:
  void run_in_background();
  void reduce(std::size_t bucket);

  std::span<float> buffer_;
  GradientBuckets buckets_;
  Options options_;
  Executor executor_;
  std::vector<Schedule> schedules_;
  std::vector<std::size_t> missing_;  // Parameters each bucket still waits for; training thread.
  std::size_t complete_ = 0;          // Buckets before this one are complete; training thread.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t released_ = 0;  // Buckets that may travel.
  std::size_t reduced_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace cohort
