#pragma once

#include <memory>
#include <span>

#include "base/deadline.h"
#include "collective/elements.h"
#include "collective/reduce_kernel.h"
#include "collective/schedule.h"
#include "transport/transport.h"

namespace cohort::collective {

/// Runs schedules on a transport, which must outlive it. One thread at a time; calls block until
/// the schedule is done, or the deadline has passed. All messages of a run have one tag: two runs
/// at the same time on one transport need different ones.
class Executor {
 public:
  explicit Executor(transport::Transport& transport);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int rank() const { return transport_.rank(); }
  int world() const { return transport_.size(); }

  /// Runs this rank's schedule on `buffer` while the other ranks run theirs with the same tag.
  /// What it reduces it sums, or combines as `how` says.
  /// What is received to be reduced goes through memory that is kept for the next run.
  ///
  /// Throws Error(invalid) for a buffer that is too small for the schedule, or of bytes where that
  /// has sums. Throws Error saying which collective, step and peer failed. Then the buffer's
  /// content is undefined and the transport closed: messages may still have been on their way to
  /// and from the buffer, and the peers cannot finish without this rank either.
  void run(const Schedule& schedule, Elements buffer, transport::Tag tag, Deadline deadline,
           Reduction how = Reduction::sum);

  /// The same, but after an Error the transport is still open, for who wants to tell the peers why
  /// before they see that it is not. The caller closes it before the buffer or this goes.
  void run_unclosed(const Schedule& schedule, Elements buffer, transport::Tag tag,
                    Deadline deadline, Reduction how = Reduction::sum);

 private:
  class StepRunner;

  transport::Transport& transport_;
  std::unique_ptr<StepRunner> step_runner_;
};

}  // namespace cohort::collective
