#include "collective/bucket_reducer.h"

#include <algorithm>

#include "collective/algorithms.h"

namespace cohort::collective {

// From the last parameter to the first: a bucket is closed when it is large enough, and on both
// sides of a parameter that travels apart.
GradientBuckets GradientBuckets::of(std::span<const std::size_t> offsets, std::size_t size,
                                    std::size_t tail, std::size_t bucket_bytes,
                                    const std::vector<bool>& travels_apart) {
  GradientBuckets buckets;
  buckets.bucket_of.resize(offsets.size());
  std::size_t end = size + tail;
  std::size_t waiting = 0;
  const auto close = [&](std::size_t begin, std::optional<std::size_t> apart = {}) {
    buckets.segments.push_back({begin, end});
    buckets.parameters.push_back(waiting);
    buckets.apart.push_back(apart);
    end = begin;
    waiting = 0;
  };
  for (std::size_t i = offsets.size(); i-- > 0;) {
    const std::size_t begin = offsets[i];
    const bool apart = !travels_apart.empty() && travels_apart[i];
    if (const std::size_t next = i + 1 < offsets.size() ? offsets[i + 1] : size;
        apart && end > next) {
      close(next);  // What stands between.
    }
    buckets.bucket_of[i] = buckets.segments.size();
    ++waiting;
    if (apart) {
      close(begin, i);
    } else if ((end - begin) * sizeof(float) >= bucket_bytes || i == 0) {
      close(begin);
    }
  }
  return buckets;
}

// Two threads, where there is a background: the worker's says which parameters are ready, and waits
// in the end; the other sums buckets, one at a time. They share three counts, under the mutex:
//
//   reduced_  ≤  released_  ≤  all buckets
//      │            └ complete, and so are all before them
//      └ summed: the first so many of the buffer's segments are what all ranks have
//
// The buffer itself needs no lock: a bucket is the worker's until it is released, then the other
// thread's until it is reduced. `missing_` and `complete_` are the worker's alone.
BucketReducer::BucketReducer(transport::Transport& transport, std::span<float> buffer,
                             GradientBuckets buckets, Options options)
    : buffer_(buffer),
      buckets_(std::move(buckets)),
      options_(std::move(options)),
      executor_(transport),
      missing_(buckets_.parameters) {
  for (const Segment& segment : buckets_.segments) {
    schedules_.push_back(
        all_reduce_schedule(options_.algorithm, transport.rank(), options_.hosts, segment.size()));
  }
  if (options_.background) thread_ = std::thread([this] { run_in_background(); });
}

BucketReducer::~BucketReducer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BucketReducer::begin_step() {
  missing_ = buckets_.parameters;
  complete_ = 0;
  const std::lock_guard lock(mutex_);
  released_ = reduced_ = 0;
}

// Buckets are released in their order only: one that is complete early waits for those before it.
void BucketReducer::parameter_ready(std::size_t parameter) {
  --missing_[buckets_.bucket_of[parameter]];
  const std::size_t before = complete_;
  while (complete_ < missing_.size() && missing_[complete_] == 0) ++complete_;
  if (complete_ == before) return;
  {
    const std::lock_guard lock(mutex_);
    released_ = complete_;
  }
  changed_.notify_all();
}

void BucketReducer::wait_for_first(std::size_t buckets) {
  if (!options_.background) {
    for (; reduced_ < std::min(released_, buckets); ++reduced_) reduce(reduced_);
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || reduced_ >= buckets; });
  if (failure_) std::rethrow_exception(failure_);
}

// What goes wrong is kept for whoever waits; then the thread ends, as no bucket can travel any
// more.
void BucketReducer::run_in_background() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || reduced_ < released_; });
    if (stopping_) return;
    const std::size_t bucket = reduced_;
    lock.unlock();
    std::exception_ptr failure;
    const auto begin = Clock::now();
    try {
      reduce(bucket);
      options_.phases->add_background(Phase::communication, begin, Clock::now());
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    ++reduced_;
    changed_.notify_all();
    if (failure_) return;
  }
}

void BucketReducer::reduce(std::size_t bucket) {
  const Waiting waiting(options_.activity, WaitFor::bucket, static_cast<int>(bucket));
  if (buckets_.apart[bucket]) {
    options_.exchange_apart(bucket, Deadline::in(options_.timeout));
    return;
  }
  const Segment& segment = buckets_.segments[bucket];
  executor_.run(schedules_[bucket], buffer_.subspan(segment.begin, segment.size()),
                static_cast<transport::Tag>(bucket), Deadline::in(options_.timeout));
}

}  // namespace cohort::collective
