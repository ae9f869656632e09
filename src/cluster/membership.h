#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace cohort::cluster {

/// Who trains with whom, decided by the launcher and by nobody else.
///
/// Words. A *worker* is known by its number, which it keeps for the whole run, also when its
/// process is replaced. A *view* is a group of workers that train together, from one change of
/// membership to the next; elsewhere it is called a group. Its *generation* is its number:
/// views of a run are counted from 1, and what a group uses (keys of the store, connections,
/// barriers) is made anew for its generation, so that nothing late of an older one can be taken for
/// its own. A *rank* is a place in a view. The *chief* is rank 0, whose state counts where the
/// workers' differ.
///
/// One change, as the launcher drives it (launch/groups.cc):
///
///   lose(1)                 worker 1's process has ended; in lockstep nobody can go on without it
///   wants_pause() is true   the launcher asks all who train to pause after their step
///   await(1)                a process for it is being started
///   ready(0, 7) ready(2, 7) the others have paused, having made 7 steps
///   ready(1, -1)            the new process is there, without any state
///   next()                  a view of generation + 1: workers 0 2 1, the chief is 0

/// See above. The memory of a run has it where all tasks see it (launch/control/view_register.h).
struct View {
  std::int64_t generation = 0;    ///< Counts the views of a run from 1.
  std::vector<int> workers = {};  ///< By rank.
  bool closing = false;           ///< The group only saves what it has; then the run ends.

  int world() const { return static_cast<int>(workers.size()); }
  std::optional<int> rank_of(int worker) const {
    const auto place = std::ranges::find(workers, worker);
    if (place == workers.end()) return std::nullopt;
    return static_cast<int>(place - workers.begin());
  }

  bool operator==(const View&) const = default;
};

/// The decision: the launcher tells it what happens, and it tells when the workers shall pause and,
/// once all that are left have done so, who goes on. Pure: it talks to nobody and has no clock. One
/// thread at a time.
///
///                    await           ready                next()
///   (not there) ---------> awaited ---------> ready -------------> training
///        ^                                      ^                     |
///        |  lose, finish (from any state)       +--- ready (paused) --+
///
/// A new view holds everybody who is ready, up to the number that is wanted. It is told only when
/// nobody trains any more, so that nobody sends anything in the old group; when enough are ready;
/// and not while one is awaited that there is room for, since a view without it would end at once.
/// Who is ready and finds no room is forgotten: it was sent away.
///
/// The chief is whoever has come furthest; of equals, and where a loss does not stop all, who was
/// first before. Who has no state is never chief while anybody has.
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

  /// The next view, once it can be told. It is the current one from then on.
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
    std::int64_t step = -1;  ///< Steps its model has seen; -1: it has no state.
  };

  int count(State state) const;
  bool view_is_stale() const;
  /// Those who are ready, the chief first.
  std::vector<int> in_order() const;

  Options options_;
  View view_;
  std::map<int, Member> members_;  // By number; who is not in it is not there.
  bool broken_ = true;             // The current view cannot go on: at first there is none.
  bool closing_ = false;
};

}  // namespace cohort::cluster
