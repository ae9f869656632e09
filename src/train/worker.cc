#include "train/worker.h"

#include <c10/util/Exception.h>
#include <malloc.h>

#include <optional>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/integers.h"
#include "base/log.h"
#include "data/sampler.h"
#include "train/session.h"
#include "train/state/start_state.h"

namespace cohort::training {
namespace {

/// A worker on its way through the groups; the order of things is told at run_worker().
class Worker {
 public:
  Worker(const WorkerRun& run, launch::Seat& seat) : seat_(seat), life_(run, seat.worker()) {}

  void run(const std::function<void()>& on_failure) {
    cluster::View view = seat_.first();
    while (view.rank_of(life_.worker) && !train_in(view, on_failure)) {
      life_.card.activity.waiting.store(WaitFor::nothing);
      life_.card.heading_for.store(0);
      view = seat_.next(view.generation, steps_done());
    }
    life_.log.reset();
    finish_writing();
    life_.trace.write(life_.run.run_dir, life_.worker);
    life_.card.state.store(launch::TaskState::done);
  }

 private:
  /// True when the training is over.
  bool train_in(const cluster::View& view, const std::function<void()>& on_failure) {
    try {
      if (session_in(view).run() == Session::End::finished) return true;
    } catch (...) {
      const Error error = current_error();
      if (!seat_.has_next() || !ends_only_the_group(error, view)) {
        on_failure();
        leave();
        throw;
      }
      // What was read from the disk is of the group that did not form: another one reads it anew,
      // and whoever has no more than that is not ahead of those who have nothing.
      if (std::exchange(from_disk_, false)) state_.reset();
      // The others may be waiting for it to appear.
      if (forming_) life_.run.control.break_group(view.generation);
      log_warn("worker {} leaves group {}: {}", life_.worker, view.generation, error.what());
      launch::put_text(life_.card.error, error.what());
    }
    leave();
    failpoint("worker.pause");
    return false;
  }

  /// A checkpoint may still be on its way to the disk.
  void finish_writing() {
    const Working working(life_.card.activity, BusyWith::checkpoint);
    life_.parts.wait_until_written();
    if (!life_.checkpoints) return;
    try {
      life_.checkpoints->wait_until_written();
    } catch (const Error& error) {
      log_warn("{}", error.what());
    }
  }

  /// What another group of workers may not suffer from. Everything else would happen there again.
  bool ends_only_the_group(const Error& error, const cluster::View& view) const {
    const bool too_large = error.code() == ErrorCode::no_space && forming_ && view.generation > 1;
    return too_large || error.code() == ErrorCode::peer_lost ||
           error.code() == ErrorCode::timeout || error.code() == ErrorCode::cancelled;
  }

  /// The session of the group before is kept until there is a new one: should the chief be lost
  /// meanwhile, this worker still has what it needs to take over.
  Session& session_in(const cluster::View& view) {
    const Working working(life_.card.activity, BusyWith::group);
    forming_ = true;
    if (view.generation > 1) failpoint("worker.carry");
    const bool chief = view.rank_of(life_.worker) == 0;
    if (session_ && (chief || session_->all_carry())) {
      session_->carry(state_.emplace(std::move(state_).value_or(tensor::TrainingState())));
      session_.reset();
      group_ = {};
    }
    std::filesystem::path from;
    if (chief && !state_) {
      state_ = state_from_disk(life_.run, view, from);
      from_disk_ = true;
    }
    launch::Seat::Group group = join(view);
    agree_on_start(view, *group.store, from);
    auto session = std::make_unique<Session>(life_, view, group, state_ ? &*state_ : nullptr);
    state_.reset();
    from_disk_ = false;
    session_ = std::move(session);
    group_ = std::move(group);
    forming_ = false;
    ::malloc_trim(0);  // What the group before needed is the machine's again.
    return *session_;
  }

  /// The chief may have to read a checkpoint first. See Session::come_together.
  launch::Seat::Group join(const cluster::View& view) {
    std::optional<Timeout::Longer> longer;
    if (seat_.has_next()) longer.emplace(life_.timeout, kLongestWork);
    return seat_.join(view, life_.timeout.deadline());
  }

  /// Where the chief goes on from a checkpoint, all others have nothing but their parts of it.
  void agree_on_start(const cluster::View& view, cluster::Store& store,
                      const std::filesystem::path& chiefs) {
    if (view.world() == 1) return;
    const int rank = view.rank_of(life_.worker).value();
    const std::string key = "start" + store.mark_of_rank(0);
    if (rank == 0) return store.set(key, chiefs.string());
    if (state_) return;
    std::optional<Timeout::Longer> longer;
    if (seat_.has_next()) longer.emplace(life_.timeout, kLongestWork);
    const std::string from = store.get(key, life_.timeout.deadline());
    if (from.empty()) return;
    state_ = part_from_disk(life_.run, {.rank = rank, .world = view.world()}, from);
    from_disk_ = true;
  }

  /// Of the state this worker has; -1 where it has none.
  std::int64_t steps_done() const {
    if (state_) return state_->step;
    return session_ ? session_->steps_done() : -1;
  }

  void leave() noexcept {
    if (session_) session_->leave();
  }

  launch::Seat& seat_;
  WorkerLife life_;                             // Outlives the sessions, which use it.
  std::optional<tensor::TrainingState> state_;  // To start the next session from.
  bool from_disk_ = false;                      // It was read for the group that is being formed.
  launch::Seat::Group group_;                   // Of the session, which uses its store and engine.
  std::unique_ptr<Session> session_;            // The newest; null before the first.
  bool forming_ = false;  // Between a view and its session: others may be waiting.
};

}  // namespace

std::int64_t total_steps(const TrainOptions& train, std::int64_t samples) {
  if (train.steps > 0) return train.steps;
  const auto steps = checked_product(train.epochs, data::steps_per_epoch(samples, train.batch));
  if (steps && *steps <= data::kMostSteps) return *steps;
  fail(
      ErrorCode::invalid,
      "train.epochs = {} over {} samples in batches of {} are more than {} steps; set fewer epochs",
      train.epochs, samples, train.batch, data::kMostSteps);
}

// Whatever a job's own functions, torch or the library throw becomes an Error here, with a code by
// which the launcher decides whether another process would fare better.
Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const c10::Error& error) {
    return Error(ErrorCode::io, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::no_space, "there is no memory left");
  } catch (const std::exception& error) {
    return Error(ErrorCode::io, error.what());
  } catch (...) {
    return Error(ErrorCode::io, "an exception that is no std::exception was thrown");
  }
}

void run_worker(const WorkerRun& run, launch::Seat& seat, const std::function<void()>& on_failure) {
  Worker(run, seat).run(on_failure);
}

}  // namespace cohort::training
