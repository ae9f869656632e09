#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"

namespace cohort::meet {

/// Which ranks of a run are still there, so that whoever serves a store can go after all others: ranks
/// that are started one by one have no launcher that stays. Each has a counter in the store, to which
/// a thread of its own adds now and then: it lives, whatever its program does meanwhile.
///
///   rank 1   1 … 2 … 3 … gone                        counts itself out
///   rank 2   1 … 2 … 3 … 4 … 5 … 5 … 5               was killed: shows itself no more
///   rank 0   1 … 2 … 3 …   awaits them         goes
class Attendance {
 public:
  static constexpr Duration kBeat = std::chrono::seconds(1);
  /// After so long without a beat a rank is not there any more.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  /// `store`, which has the counters of all, is this one's alone.
  Attendance(std::unique_ptr<cluster::Store> store, int rank);
  /// This rank goes.
  ~Attendance();
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  /// Returns when all of these ranks have gone or show themselves no more, or at the deadline. Where
  /// the store is gone nobody is awaited.
  void await_others(const std::vector<int>& ranks, Deadline deadline) noexcept;

 private:
  /// Another rank, as the one that waits for it sees it.
  struct Other {
    int rank = 0;
    std::int64_t beats = 0;
    Clock::time_point since = {};  ///< They are so many.
  };

  void beat(const std::stop_token& stop);
  bool has_gone(Other& other);
  std::int64_t add(int rank, std::int64_t beats);

  std::mutex mutex_;
  const std::unique_ptr<cluster::Store> store_;  // Guarded by mutex_.
  const int rank_;
  std::jthread thread_;  // Last, so that it ends before what it uses goes.
};

}  // namespace cohort::meet
