#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/activity.h"
#include "base/phases.h"
#include "collective/executor.h"
#include "collective/schedule.h"

namespace cohort::collective {

/// The flat gradients cut into pieces that travel one by one, in the order in which the backward
/// pass completes them: from the last parameter to the first. Bucket 0 also takes the `tail` floats
/// that stand behind the gradients, since they are known before the backward pass begins.
///
/// Parameters that travel *apart*, in a way of their own, have a bucket each.
struct GradientBuckets {
  std::vector<Segment> segments;        ///< In order of travel; together all floats, once.
  std::vector<std::size_t> bucket_of;   ///< By parameter.
  std::vector<std::size_t> parameters;  ///< How many parameters each bucket waits for.
  /// The one parameter of a bucket that travels apart; nothing for the others.
  std::vector<std::optional<std::size_t>> apart;

  /// `offsets`: where each parameter's gradient begins, ascending; `size`: of all gradients;
  /// `travels_apart`: by parameter, empty where none does.
  static GradientBuckets of(std::span<const std::size_t> offsets, std::size_t size,
                            std::size_t tail, std::size_t bucket_bytes,
                            const std::vector<bool>& travels_apart = {});
};

/// All-reduces the buckets of one flat buffer in their order, on a thread of its own (`background`)
/// or, without one, when waited for. Buckets may become ready in any order; they travel in the
/// order of their numbers, which is the same on every rank, so ranks never wait in a circle.
///
/// One step, with the calls of the training thread on the left:
///
///   begin_step()             all buckets wait for all their parameters
///   parameter_ready(p) …     a bucket whose parameters are all there is *complete*; it is
///                            *released*, may travel, once all buckets before it are complete
///   wait()                   returns when all are *reduced*: every rank has the sums
///
/// All calls come from one thread. While a bucket is released and not reduced its floats belong to
/// this object. The transport and the buffer must outlive it. After a failure it is of no more use:
/// the transport is closed (see Executor) and every wait throws.
class BucketReducer {
 public:
  struct Options {
    std::string algorithm = "auto";
    std::vector<int> hosts = {};  ///< Of the ranks; see Engine::hosts.
    Duration timeout;
    bool background = false;
    PhaseClock* phases = nullptr;  ///< Told of what travels; needed where `background` is set.
    Activity* activity = nullptr;  ///< Where waits for others are shown; may be null.
    /// Takes the place of the all-reduce for a parameter that travels apart, on the same thread and
    /// at the same place in the order of messages; called with its bucket.
    std::function<void(std::size_t bucket, Deadline deadline)> exchange_apart = {};
  };

  BucketReducer(transport::Transport& transport, std::span<float> buffer, GradientBuckets buckets,
                Options options);
  /// Ends the thread. A bucket that is under way is waited for, so where peers are lost close the
  /// transport first.
  ~BucketReducer();
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  const GradientBuckets& buckets() const { return buckets_; }

  /// After the wait() of the step before.
  void begin_step();
  /// The gradient of `parameter` is in the buffer. Once per parameter and step.
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
  std::vector<Schedule> schedules_;   // By bucket; those that travel apart do not use theirs.
  std::vector<std::size_t> missing_;  // Parameters each bucket still waits for; training thread.
  std::size_t complete_ = 0;          // Buckets before this one are complete; training thread.

  std::mutex mutex_;  // Of all below; without a thread only the training thread looks at them.
  std::condition_variable changed_;
  std::size_t released_ = 0;  // Buckets that may travel: the first so many.
  std::size_t reduced_ = 0;   // Buckets that have travelled: the first so many.
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace cohort::collective
