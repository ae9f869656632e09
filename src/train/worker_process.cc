#include "train/worker_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/log.h"
#include "cluster/host_id.h"
#include "job/job_file.h"
#include "server/run_server.h"
#include "strategy/server_options.h"
#include "train/failure.h"
#include "train/server_report.h"
#include "train/worker_report.h"
#include "transport/inproc/inproc_hub.h"

namespace cohort {
namespace {

constexpr double kReportSeconds = 10;

/// Of what must be the same on every host; where a host keeps its data is its own business.
std::uint32_t job_checksum(Job job) {
  job.data.path.clear();
  job.data.validation_path.clear();
  const std::string text = to_toml(job);
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

/// The exception being handled as an error of ours: it may come from LibTorch, or from a program's
/// own model, dataset or loss.
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

/// Puts the exception being handled into the worker's slot; the first one counts. Returns what to
/// exit with.
int report_failure(TaskSlot& slot) {
  const Error failure = current_error();
  if (slot.state.load() != WorkerState::failed) {
    log_error("{}", failure.what());
    slot.fail_with(failure);
  }
  return exit_code(failure.code());
}

/// A process that failed ends at once. Tearing things down could wait for peers, or touch a
/// transport that another thread still uses; the kernel closes everything, and the peers notice.
[[noreturn]] void end_failed(TaskSlot& slot) {
  const int code = report_failure(slot);
  std::fflush(nullptr);
  ::_exit(code);
}

/// All ranks must have read the same job and the same data, or they would train on a mixture.
void check_same_job(const WorkerRun& run, int rank, Store& store, Deadline deadline) {
  const std::string mine =
      fmt::format("{} training samples, {} validation samples, job {:08x}", run.data.train->size(),
                  run.data.validation->size(), job_checksum(run.job));
  if (rank == 0) store.set("job", mine);
  const std::string chiefs = store.get("job", deadline);
  if (mine == chiefs) return;
  fail(
      ErrorCode::invalid,
      "rank {} has another job or other data than rank 0: {} there, {} here; use the same job file "
      "and data on every host",
      rank, chiefs, mine);
}

void introduce(TaskIdentity& task) {
  task.pid = ::getpid();
  put_text(task.host, host_name());
}

/// Which of the ranks that share this host this one is. Launchers started one by one do not know of
/// each other, so the ranks find out.
LocalPlace local_place(Store& store, const ProcessPlan& plan, Deadline deadline) {
  const auto rank = static_cast<std::size_t>(plan.ranks.front());
  const auto hosts = hosts_of_ranks(store, plan.ranks.front(), plan.world, deadline);
  const auto before = std::count(hosts.begin(), hosts.begin() + plan.ranks.front(), hosts[rank]);
  const auto all = std::count(hosts.begin(), hosts.end(), hosts[rank]);
  return {static_cast<int>(before), static_cast<int>(all)};
}

/// A worker that has nobody to talk to.
void run_alone(const WorkerRun& run, const std::function<void()>& end) {
  InprocHub alone(1);
  MemoryStore store;
  run_worker(run, *alone.engine(0), store, end);
}

/// A worker that meets others in the store.
void run_among_others(const WorkerRun& run, const ProcessPlan& plan, TcpStore& store,
                      const std::function<void()>& end) {
  const int rank = plan.ranks.front();
  const Deadline deadline = Deadline::in_seconds(run.job.cluster.timeout_seconds);
  if (plan.remote) set_compute_threads(run.job.cluster, local_place(store, plan, deadline), true);
  check_same_job(run, rank, store, deadline);
  const auto engine = make_engine({.name = run.job.cluster.engine,
                                   .rank = rank,
                                   .world = plan.world,
                                   .address = store.local_address(),
                                   .cores = run.cores},
                                  store, deadline);
  run_worker(run, *engine, store, end);
  if (!plan.remote) return;
  WorkerSlot& slot = run.control.slot(rank);
  slot.result.task.peak_rss_bytes = peak_rss_bytes();
  if (rank == 0) {
    collect_reports(store, run.control, Deadline::in_seconds(kReportSeconds));
  } else {
    send_report(store, rank, slot.result);
  }
}

int run_one_worker(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous) {
  WorkerSlot& slot = run.control.slot(plan.ranks.front());
  introduce(slot.result.task);
  const auto end = [&] { end_failed(slot); };
  try {
    if (plan.world == 1 && run.control.servers().empty()) {
      run_alone(run, end);
    } else {
      const auto store = rendezvous.connect(Deadline::in_seconds(run.job.cluster.timeout_seconds));
      run_among_others(run, plan, *store, end);
    }
  } catch (...) {
    end_failed(slot);
  }
  return 0;
}

/// A server serves as soon as it has said in the store where it is, and ends with the last worker.
void serve(const WorkerRun& run, int server, Store& store, const std::string& address) {
  ServerSlot& slot = run.control.server(server);
  introduce(slot.task);
  slot.state.store(WorkerState::training);
  ServerOptions options = server_options(
      run.job, server, total_steps(run.job.train, run.data.train->size()), run.cores);
  options.address = address;
  log_info("server {} serves {} workers", server, options.rules.workers);
  slot.report = report_of(run_server(options, store));
  slot.state.store(WorkerState::done);
}

int run_one_server(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous) {
  const int server = plan.servers.front();
  try {
    const auto store = rendezvous.connect(Deadline::in_seconds(run.job.cluster.timeout_seconds));
    serve(run, server, *store, plan.remote ? store->local_address() + ":0" : "unix");
  } catch (...) {
    end_failed(run.control.server(server));
  }
  return 0;
}

int run_threads(const WorkerRun& run, const ProcessPlan& plan) {
  InprocHub hub(plan.world);
  MemoryStore store;
  std::atomic<int> worst = 0;
  std::vector<std::thread> threads;
  for (const int server : plan.servers) {
    threads.emplace_back([&, server] {
      try {
        serve(run, server, store, "unix");
      } catch (...) {
        worst = report_failure(run.control.server(server));
      }
    });
  }
  for (const int rank : plan.ranks) {
    threads.emplace_back([&, rank] {
      set_compute_threads(run.job.cluster, {rank, plan.world}, false);
      WorkerSlot& slot = run.control.slot(rank);
      introduce(slot.result.task);
      try {
        const auto engine = hub.engine(rank);
        run_worker(run, *engine, store, [&] { report_failure(slot); });
      } catch (...) {
        worst = report_failure(slot);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return worst;
}

}  // namespace

int run_process(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous) {
  keep_large_blocks();
  if (plan.ranks.empty()) return run_one_server(run, plan, rendezvous);
  if (plan.ranks.size() + plan.servers.size() > 1) {
    set_compute_threads(run.job.cluster, {0, plan.world}, false);
    return run_threads(run, plan);
  }
  if (!plan.remote) set_compute_threads(run.job.cluster, plan.place, true);
  return run_one_worker(run, plan, rendezvous);
}

}  // namespace cohort
