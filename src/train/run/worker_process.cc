#include "train/run/worker_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "cluster/exit_code.h"
#include "cluster/host_id.h"
#include "job/job_file.h"
#include "launch/control/heartbeat.h"
#include "launch/seat.h"
#include "meet/process_settings.h"
#include "meet/this_host.h"
#include "os/this_process.h"
#include "server/door/run_server.h"
#include "strategy/servers/server_rule.h"
#include "train/run/compute_threads.h"
#include "train/run/reports.h"
#include "transport/inproc/inproc.h"

namespace cohort::training {
namespace {

/// How long the chief waits at its end for the reports of workers of other launchers.
constexpr double kReportSeconds = 10;

cluster::Member worker_member(int worker) {
  return {cluster::Member::Role::worker, worker};
}

/// Of what must be the same on every host; where a host keeps its data is its own business.
std::uint32_t job_checksum(Job job) {
  job.data.path.clear();
  job.data.validation_path.clear();
  const std::string text = job::to_toml(job);
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

/// Puts the exception being handled onto the worker's card; the first one counts. Returns what to
/// exit with.
int report_failure(launch::TaskCard& card) {
  const Error failure = current_error();
  if (card.state.load() != launch::TaskState::failed) {
    log_error("{}", failure.what());
    card.fail_with(failure);
  }
  return cluster::exit_code(failure.code());
}

/// A process that failed ends at once. Tearing things down could wait for peers, or touch a
/// transport that another thread still uses; the kernel closes everything, and the peers notice.
[[noreturn]] void end_failed(launch::TaskCard& card) {
  const int code = report_failure(card);
  os::flush_output();
  ::_exit(code);
}

/// All ranks must have read the same job and the same data, or they would train on a mixture.
void check_same_job(const WorkerRun& run, int rank, cluster::Store& store, Deadline deadline) {
  const std::string mine =
      fmt::format("{} training samples, {} validation samples, job {:08x}", run.data.train->size(),
                  run.data.validation->size(), job_checksum(run.job));
  const std::string key = "job" + store.mark_of_rank(0);
  if (rank == 0) store.set(key, mine);
  const std::string chiefs = store.get(key, deadline);
  if (mine == chiefs) return;
  fail(
      ErrorCode::invalid,
      "rank {} has another job or other data than rank 0: {} there, {} here; use the same job file "
      "and data on every host",
      rank, chiefs, mine);
}

void introduce(launch::TaskIdentity& task) {
  task.pid = ::getpid();
  launch::put_text(task.host, cluster::host_name());
}

/// A worker whose peers have launchers of their own.
void run_among_launchers(const WorkerRun& run, const launch::ProcessPlan& plan,
                         cluster::SocketStore& everybodys, const std::function<void()>& end) {
  const int rank = plan.workers.front();
  const Deadline deadline = Deadline::in_seconds(run.job.cluster.timeout_seconds);
  const os::LocalPlace place = meet::local_place(everybodys, rank, plan.world, deadline);
  set_compute_threads(run.job.cluster, place, run.part_work, true);
  std::optional<meet::StoreOfThisHost> host;
  if (!everybodys.local_address().empty()) {
    host.emplace(everybodys, place.local_rank == 0, worker_member(rank), deadline);
  }
  cluster::Store& store = host ? host->store() : everybodys;
  check_same_job(run, rank, store, deadline);
  launch::OnlySeat seat({.generation = plan.generation},
                        transport::make_engine({.name = run.job.cluster.engine,
                                                .rank = rank,
                                                .world = plan.world,
                                                .address = everybodys.local_address(),
                                                .cores = run.cores},
                                               store, deadline),
                        run.control, store);
  run_worker(run, seat, end);
  launch::WorkerCard& card = run.control.card(rank);
  card.result.task.peak_rss_bytes = peak_rss_bytes();
  if (rank == 0) {
    collect_reports(store, run.control, Deadline::in_seconds(kReportSeconds));
  } else {
    send_report(store, rank, card.result);
  }
}

/// A worker that is a process of its own.
int run_one_worker(const WorkerRun& run, const launch::ProcessPlan& plan,
                   const meet::Rendezvous& rendezvous) {
  const int worker = plan.workers.front();
  launch::WorkerCard& card = run.control.card(worker);
  introduce(card.result.task);
  const launch::Heartbeat heartbeat(card);
  const auto end = [&] { end_failed(card); };
  try {
    failpoint("worker.start");
    const auto store = rendezvous.connect(worker_member(worker),
                                          Deadline::in_seconds(run.job.cluster.timeout_seconds));
    if (plan.remote) {
      run_among_launchers(run, plan, *store, end);
    } else {
      launch::RegroupingSeat seat({.cluster = run.job.cluster,
                                   .worker = worker,
                                   .first_generation = plan.generation,
                                   .cores = run.cores},
                                  run.control, *store);
      run_worker(run, seat, end);
    }
  } catch (...) {
    end_failed(card);
  }
  return 0;
}

/// A server serves as soon as it has said in the store where it is, and ends with the last worker
/// of its group, or when the launcher forms another.
struct ServerPlace {
  int server = 0;
  cluster::Store& store;
  std::string address;
};
void serve(const WorkerRun& run, const launch::ProcessPlan& plan, const ServerPlace& place) {
  const int server = place.server;
  launch::ServerCard& card = run.control.server(server);
  introduce(card.task);
  card.state.store(launch::TaskState::training);
  const launch::Heartbeat heartbeat(card);
  failpoint("server.start");
  const auto group = launch::group_store(place.store, run.control,
                                         {.generation = plan.generation, .workers = plan.served});
  server::ServerOptions options =
      strategy::server_options(run.job, server,
                               {.workers = plan.world,
                                .generation = plan.generation,
                                .steps = total_steps(run.job.train, run.data.train->size()),
                                .cores = run.cores});
  if (!run.server_memories.empty()) {
    options.memory = run.server_memories[static_cast<std::size_t>(server)];
    // No push, copy or memory of a codec is larger than twice what it is of.
    options.message_bytes = 2 * options.memory.size() + rpc::kLeastMessageLimit;
  }
  if (run.server_replicas.empty()) {
    options.replicas = 1;  // The servers' memory ends with them.
  } else {
    options.replica_memory = run.server_replicas[static_cast<std::size_t>(server)];
  }
  options.address = place.address;
  if (!plan.remote) options.appear = kLongestWork;  // They may have large models to make.
  options.give_up = [&] { return run.control.servers_shall_end(plan.generation); };
  log_info("server {} serves the {} workers of group {}", server, plan.world, plan.generation);
  cluster::ServerReport report = server::run_server(options, *group);
  // Servers of earlier groups have counted too; memory that lasts has it.
  if (options.memory.empty()) report.counts.add(card.report.counts);
  card.report = report;
  card.state.store(launch::TaskState::done);
}

int run_one_server(const WorkerRun& run, const launch::ProcessPlan& plan,
                   const meet::Rendezvous& rendezvous) {
  const int server = plan.servers.front();
  try {
    const cluster::Member self{cluster::Member::Role::server, server};
    const Deadline deadline = Deadline::in_seconds(run.job.cluster.timeout_seconds);
    const auto store = rendezvous.connect(self, deadline);
    const std::string address = store->local_address();
    std::optional<meet::StoreOfThisHost> host;
    if (!address.empty()) host.emplace(*store, false, self, deadline);
    serve(run, plan,
          {.server = server,
           .store = host ? host->store() : *store,
           .address = address.empty() ? "unix" : address + ":0"});
  } catch (...) {
    end_failed(run.control.server(server));
  }
  return 0;
}

/// Threads cannot be lost but by an error of theirs, which ends the others' waiting for them.
int run_threads(const WorkerRun& run, const launch::ProcessPlan& plan) {
  transport::InprocHub hub(plan.world);
  cluster::MemoryStore store;
  std::atomic<int> worst = 0;
  std::vector<std::thread> threads;
  const launch::Heartbeat heartbeat(run.control.card(plan.workers.front()));
  const auto note_failure = [&](launch::TaskCard& card) {
    const int code = report_failure(card);
    run.control.break_group(plan.generation);
    return code;
  };
  for (const int server : plan.servers) {
    threads.emplace_back([&, server] {
      try {
        serve(run, plan, {server, store, "unix"});
      } catch (...) {
        worst = note_failure(run.control.server(server));
      }
    });
  }
  for (const int rank : plan.workers) {
    threads.emplace_back([&, rank] {
      set_compute_threads(run.job.cluster, {rank, plan.world}, run.part_work, false);
      launch::WorkerCard& card = run.control.card(rank);
      introduce(card.result.task);
      try {
        launch::OnlySeat seat({.generation = plan.generation, .watched = true}, hub.engine(rank),
                              run.control, store);
        run_worker(run, seat, [&] { note_failure(card); });
      } catch (...) {
        worst = note_failure(card);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return worst;
}

}  // namespace

int run_process(const WorkerRun& run, const launch::ProcessPlan& plan,
                const meet::Rendezvous& rendezvous) {
  meet::keep_large_blocks();
  set_failpoints(plan.failpoints);
  if (plan.workers.empty()) return run_one_server(run, plan, rendezvous);
  if (plan.workers.size() + plan.servers.size() > 1) {
    set_compute_threads(run.job.cluster, {0, plan.world}, run.part_work, false);
    return run_threads(run, plan);
  }
  if (!plan.remote) set_compute_threads(run.job.cluster, plan.place, run.part_work, true);
  return run_one_worker(run, plan, rendezvous);
}

}  // namespace cohort::training
