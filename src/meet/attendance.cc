#include "meet/attendance.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <string>
#include <utility>

#include "base/log.h"

namespace cohort::meet {
namespace {

/// More than anybody's beats.
constexpr std::int64_t kGone = std::int64_t{1} << 40;

/// Between looks at who is there: short at first, since most ranks end together.
constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr Duration kLongestPause = std::chrono::milliseconds(100);
/// When people are told.
constexpr Duration kLong = std::chrono::seconds(10);

}  // namespace

Attendance::Attendance(std::unique_ptr<cluster::Store> store, int rank)
    : store_(std::move(store)),
      rank_(rank),
      thread_([this](const std::stop_token& stop) { beat(stop); }) {}

Attendance::~Attendance() {
  thread_.request_stop();
  thread_.join();
  try {
    add(rank_, kGone);
  } catch (const std::exception&) {
    // Whoever served the store has gone already.
  }
}

std::int64_t Attendance::add(int rank, std::int64_t beats) {
  const std::lock_guard lock(mutex_);
  return store_->add("there/" + std::to_string(rank), beats);
}

void Attendance::beat(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopping;
  std::unique_lock lock(mutex);
  try {
    while (!stop.stop_requested()) {
      add(rank_, 1);
      stopping.wait_for(lock, stop, kBeat, [] { return false; });
    }
  } catch (const std::exception&) {
    // The store is gone, and with it whoever might look.
  }
}

bool Attendance::has_gone(Other& other) {
  const std::int64_t beats = add(other.rank, 0);
  if (beats != std::exchange(other.beats, beats)) other.since = Clock::now();
  return beats >= kGone || Clock::now() - other.since >= kPatience;
}

void Attendance::await_others(const std::vector<int>& ranks, Deadline deadline) noexcept {
  try {
    const auto start = Clock::now();
    std::vector<Other> others;
    for (const int rank : ranks) {
      if (rank != rank_) others.push_back({.rank = rank, .since = start});
    }
    bool told = false;
    for (Duration pause = kFirstPause;; pause = std::min(pause * 3 / 2, kLongestPause)) {
      std::erase_if(others, [this](Other& other) { return has_gone(other); });
      if (others.empty() || deadline.passed()) return;
      if (Clock::now() - start >= kLong && !std::exchange(told, true)) {
        log_info("rank {} serves the group's store and stays until rank {} ends", rank_,
                 others.front().rank);
      }
      std::this_thread::sleep_for(std::min(pause, deadline.remaining()));
    }
  } catch (const std::exception&) {
    // Whoever served the store has gone already.
  }
}

}  // namespace cohort::meet
