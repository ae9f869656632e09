#pragma once

#include <map>
#include <optional>

#include "cluster/membership.h"
#include "launch/launch.h"
#include "launch/patience.h"
#include "launch/tasks.h"

namespace cohort::launch {

/// Forms the groups of workers, and starts the servers of each. For workers that are processes of
/// this launcher; Membership decides who trains with whom, this class talks to the tasks about it.
///
/// *Groups.* A run is a row of groups, numbered from 1. The number is called `generation`, here as
/// in View and in the names of checkpoints that several tasks are writing. Workers keep their
/// numbers; their ranks are their places in the group. Keys in the store, connections, barriers and
/// parts of checkpoints belong to one group and carry its number, so that whatever comes late from
/// an older one finds nobody.
///
/// *From one group to the next*, which go_on() does step by step:
///
///   launcher                                        worker of group n
///   pause(n); where a task that all
///   need was lost, also broken(n)     ───────────►  leaves after its step, or when a wait fails
///                                     ◄───────────  card: ready_step, then
///                                                   awaited_generation = n+1
///   all that are left have left n, and enough
///   wait for n+1: Membership::next()
///   servers of n end, memory is reconciled,
///   those of n+1 are started
///   sent away(…), chief, view(n+1)    ───────────►  is in it: goes on; sent away: ends
///
/// Who does not pause in time is ended (patience.h), and so is a new process that does not come
/// within the timeout. There is never a worker in n+1 while another one still works in n.
///
/// *The end.* When a worker has trained to the end, or the run shall end and all is saved, the next
/// view has no workers; who reads it ends. Where the run shall end and nobody has saved yet, there
/// is one more group first, a closing one, which only saves.
///
/// *Groups that break by themselves*, without a loss or a pause asked for (a step took longer than
/// the timeout): where the group was larger than one that had worked, that size is gone back to;
/// where it happens again and again at the same step, the run is given up (take_hopeless).
///
/// For the launcher's thread.
class Groups {
 public:
  /// Both outlive it.
  Groups(const Launch& launch, Tasks& tasks);

  /// A process was started for this worker, or has ended well, or is lost.
  void started(int worker);
  void finished(int worker);
  void lost(const ProcessPlan& plan);

  /// The group of the workers that were started first. The servers were started with them.
  void form_first();

  /// Does what can be done now; call it often.
  void go_on();

  void want(int workers) { members_.want(workers); }
  /// Nobody goes on after the next pause. With `save`, what the workers have is saved first.
  void end(bool save);

  const cluster::Membership& members() const { return members_; }
  const cluster::View& view() const { return members_.view(); }
  /// Whether everybody waits for this process.
  bool is_changing() const;
  /// A worker has come to the end of the training.
  bool trained() const { return trained_; }
  /// Why groups break again and again although nobody dies; told once.
  std::optional<TaskFailure> take_hopeless();

  /// Of a worker that shall be in the next group.
  ProcessPlan plan_of(int worker) const;

 private:
  bool has_servers() const { return !control_.servers().empty(); }
  void note_ready_workers();
  void note_broken_by_itself(int worker);
  void end_absent();
  void ask_for_pause();
  Deadline pause_deadline() const;
  bool must_end();
  void tell_the_end();
  bool start_servers(const cluster::View& view);
  void publish(const cluster::View& view);

  const Launch& launch_;
  ControlBlock& control_;
  const ClusterOptions& cluster_;
  Tasks& tasks_;
  cluster::Membership members_;
  std::optional<cluster::View> next_;  // Decided, but its servers are not there yet.
  int servers_started_ = 0;            // Of them.
  Clock::time_point start_servers_at_;
  bool ending_ = false;               // Nobody shall go on after the next pause.
  bool ended_ = false;                // The view without workers is published.
  bool trained_ = false;              // See trained().
  bool lost_in_view_ = false;         // The group is over for a reason that is known.
  int breaks_ = 0;                    // Of groups that broke by themselves, one after the other.
  std::int64_t broken_at_step_ = -1;  // The furthest step of those.
  int good_world_ = 0;                // Of the last group that was asked to pause: it had worked.
  std::optional<TaskFailure> hopeless_;
  std::map<int, Deadline> come_by_;           // Of workers that were started.
  Movement movement_;                         // Of those that are asked to pause.
  std::optional<Clock::time_point> lost_at_;  // The first loss since the last group was formed.
  Deadline pause_by_ = Deadline::in(Duration::zero());
};

}  // namespace cohort::launch
