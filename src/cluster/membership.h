#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cluster/view.h"

namespace cohort {

/// Decides who trains with whom. The launcher tells it what happens; it tells when the workers
/// shall pause, and once all that are left have done so, who goes on.
///
/// A worker is *awaited* (its process is being started), *ready* (it waits for a view, with the
/// state of some step or with none), *training* (in the current view) or not there. A new view
/// holds everybody who is ready; before it is published all who train must have paused, so that
/// nobody sends anything in the old group any more. The chief is whoever has come furthest; of
/// equals, and where a loss does not stop all, who was first before.
class Membership {
 public:
  struct Options {
    int workers = 1;             ///< Wanted.
    int min_workers = 0;         ///< With fewer nobody goes on; 0: all that are wanted are needed.
    bool loss_stops_all = true;  ///< So there is no use in going on without one.
  };

  explicit Membership(const Options& options) : options_(options) {}

  /// A process was started for this worker.
  void await(int worker) { members_[worker] = {.state = State::awaited}; }

  /// It has left its view, or is new (`step` -1), and waits for the next one.
  void ready(int worker, std::int64_t step);

  /// It is gone. What it was before does not matter.
  void lose(int worker);

  /// It has trained to the end.
  void finish(int worker) { members_.erase(worker); }

  /// How many shall train from now on.
  void want(int workers) { options_.workers = workers; }
  int wanted() const { return options_.workers; }

  /// Something all need is gone or was asked to change (a server), so that they must pause.
  void need_new_view() { broken_ = true; }

  /// Nobody goes on: the next view only saves.
  void close() { closing_ = true; }

  /// Those who train shall pause after their step.
  bool wants_pause() const;

  /// The next view, once it can be told. It is the current one from then on. In it is everybody
  /// who is ready, up to the number that is wanted.
  std::optional<View> next();

  const View& view() const { return view_; }
  /// Workers that are not lost, finished or sent away: in the view, waiting for one or awaited.
  int present() const { return static_cast<int>(members_.size()); }
  bool has(int worker) const { return members_.contains(worker); }
  bool is_training(int worker) const;
  int training() const { return count(State::training); }
  /// Somebody has something to lose: it trains, or waits with the state of some step.
  bool has_state() const;

 private:
  enum class State { awaited, ready, training };
  struct Member {
    State state = State::awaited;
    std::int64_t step = -1;
  };

  int count(State state) const;
  bool view_is_stale() const;
  std::vector<int> in_order() const;

  Options options_;
  View view_;
  std::map<int, Member> members_;
  bool broken_ = true;  // The current view cannot go on: at first there is none.
  bool closing_ = false;
};

}  // namespace cohort
