#include "train/worker_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "base/log.h"
#include "cluster/host_id.h"
#include "train/failure.h"
#include "train/worker_report.h"
#include "transport/inproc/inproc_hub.h"

namespace cohort {
namespace {

constexpr double kReportSeconds = 10;

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

/// Runs a worker and puts whatever goes wrong into its slot. Exceptions of LibTorch, or of a
/// program's own model and dataset, become errors of ours here.
int run_guarded(WorkerSlot& slot, const std::function<void()>& body) {
  std::optional<Error> failure;
  try {
    body();
  } catch (const Error& error) {
    failure = error;
  } catch (const c10::Error& error) {
    failure = Error(ErrorCode::io, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    failure = Error(ErrorCode::no_space, "there is no memory left");
  } catch (const std::exception& error) {
    failure = Error(ErrorCode::io, error.what());
  }
  if (!failure) return 0;
  log_error("{}", failure->what());
  slot.fail_with(*failure);
  return exit_code(failure->code());
}

void introduce(WorkerSlot& slot) {
  slot.result.pid = ::getpid();
  put_text(slot.result.host, host_name());
}

int run_one(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous) {
  const int rank = plan.ranks.front();
  WorkerSlot& slot = run.control.slot(rank);
  introduce(slot);
  return run_guarded(slot, [&] {
    if (plan.world == 1) {
      InprocHub alone(1);
      run_worker(run, *alone.engine(0));
      return;
    }
    const Deadline deadline = Deadline::in_seconds(run.job.cluster.timeout_seconds);
    const auto store = rendezvous.connect(deadline);
    const auto engine = make_engine({.name = run.job.cluster.engine,
                                     .rank = rank,
                                     .world = plan.world,
                                     .address = store->local_address(),
                                     .cores = run.cores},
                                    *store, deadline);
    run_worker(run, *engine);
    if (!plan.remote) return;
    slot.result.peak_rss_bytes = peak_rss_bytes();
    if (rank == 0) {
      collect_reports(*store, run.control, Deadline::in_seconds(kReportSeconds));
    } else {
      send_report(*store, rank, slot.result);
    }
  });
}

int run_threads(const WorkerRun& run, const ProcessPlan& plan) {
  InprocHub hub(plan.world);
  std::atomic<int> worst = 0;
  std::vector<std::thread> threads;
  for (const int rank : plan.ranks) {
    threads.emplace_back([&, rank] {
      set_compute_threads(run.job.cluster, {rank, plan.world}, false);
      introduce(run.control.slot(rank));
      const auto engine = hub.engine(rank);
      const int code = run_guarded(run.control.slot(rank), [&] { run_worker(run, *engine); });
      if (code != 0) worst = code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return worst;
}

}  // namespace

int run_worker_process(const WorkerRun& run, const ProcessPlan& plan,
                       const Rendezvous& rendezvous) {
  keep_large_blocks();
  if (plan.ranks.size() > 1) return run_threads(run, plan);
  set_compute_threads(run.job.cluster, plan.place, true);
  return run_one(run, plan, rendezvous);
}

}  // namespace cohort
