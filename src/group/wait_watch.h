#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "group/board.h"
#include "group/call.h"
#include "group/wait_graph.h"

namespace cohort::group {

/// Watches the waits of one rank of a group from a thread of its own: who waits long tells the
/// others what for, and looks whether they wait for each other in a circle. Ranks that call
/// different things (one sends while the other is in an all-reduce) are found out by that, whatever
/// carries their messages.
///
/// A call costs it two short locks. A wait that outlasts the patience is told; one that was told and
/// ended well doubles it, up to a bound, so that ranks with long steps do not fill the store. One
/// look is enough, right after telling: of those in a circle the last one to tell sees them all.
class WaitWatch {
 public:
  /// `on_stuck` is called once, by the watching thread, with the Error that ends the group.
  /// `patience` is the first.
  WaitWatch(Board& board, int rank, Duration patience, std::function<void(const Error&)> on_stuck);
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  /// Counts a call that this rank has made, and gives it its number: of the collectives, or of the
  /// sends to call.peer, or of the receives from there.
  void count(Call& call);

  /// While it lives, the rank's own thread waits for the end of `call`, which was counted. Only for
  /// waits that nothing ends but the call's end or that of the group: who tells that it waits is
  /// taken at its word.
  class Waiting {
   public:
    Waiting(WaitWatch& watch, const Call& call);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    WaitWatch& watch_;
  };

 private:
  /// What the rank's thread tells the watching one.
  struct Now {
    std::uint64_t waits = 0;  ///< Begun so far; another number is another wait.
    bool waiting = false;
    Call call = {};
    std::uint64_t collectives = 0;
    std::vector<std::uint64_t> sends = {};
    std::vector<std::uint64_t> receives = {};
  };
  /// A wait as the watching thread sees it.
  struct Seen {
    std::uint64_t number = 0;  ///< Of the waits; 0: none.
    Clock::time_point since = {};
    bool told = false;    ///< To the other ranks.
    bool logged = false;  ///< To people.
  };

  void watch(const std::stop_token& stop);
  void look_at(const Now& now);
  void look_for_circle();
  void log_wait(const WaitStatus& own) const;
  static WaitStatus status_of(const Now& now);

  Board& board_;
  const int rank_;
  const std::function<void(const Error&)> on_stuck_;
  Duration patience_;  // Of the watching thread, as is the next.
  Seen seen_;
  std::mutex mutex_;
  std::condition_variable_any stopping_;
  Now now_;              // Guarded by mutex_.
  std::jthread thread_;  // Last, so that it ends before what it uses goes.
};

}  // namespace cohort::group
