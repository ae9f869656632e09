#pragma once

#include <map>
#include <optional>

#include "cluster/membership.h"
#include "launch/launch.h"
#include "launch/movement.h"
#include "launch/tasks.h"

namespace cohort {

/// Forms the groups of workers, and starts the servers of each: asks the workers to pause when the
/// membership changes, and when all have done so tells them with whom to go on. For workers that
/// are processes of this launcher.
class Groups {
 public:
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

  const Membership& members() const { return members_; }
  const View& view() const { return members_.view(); }
  /// Whether everybody waits for this process.
  bool is_changing() const;
  /// A worker has come to the end of the training.
  bool trained() const { return trained_; }
  /// Why groups break again and again although nobody dies; told once.
  std::optional<WorkerFailure> take_hopeless();

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
  bool start_servers(const View& view);
  void publish(const View& view);

  const Launch& launch_;
  ControlBlock& control_;
  const ClusterOptions& cluster_;
  Tasks& tasks_;
  Membership members_;
  std::optional<View> next_;  // Decided, but its servers are not there yet.
  int servers_started_ = 0;   // Of them.
  Clock::time_point start_servers_at_;
  bool ending_ = false;
  bool ended_ = false;
  bool trained_ = false;
  bool lost_in_view_ = false;
  int breaks_ = 0;  // Of groups that broke by themselves, one after the other.
  std::int64_t broken_at_step_ = -1;
  int good_world_ = 0;  // Of the last group that was asked to pause: it had worked.
  std::optional<WorkerFailure> hopeless_;
  std::map<int, Deadline> come_by_;  // Of workers that were started.
  Movement movement_;
  std::optional<Clock::time_point> lost_at_;
  Deadline pause_by_ = Deadline::in(Duration::zero());
};

}  // namespace cohort
