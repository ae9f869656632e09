#include "collective/bucket_reducer.h"

#include <algorithm>

#include "collective/make_schedule.h"

namespace cohort {

BucketReducer::BucketReducer(Transport& transport, std::span<float> buffer, GradientBuckets buckets,
                             Options options)
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
                static_cast<Tag>(bucket), Deadline::in(options_.timeout));
}

}  // namespace cohort
