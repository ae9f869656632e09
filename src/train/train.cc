#include <cohort/train.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>

#include "base/fail.h"
#include "base/files.h"
#include "base/log.h"
#include "cluster/shared_wait.h"
#include "data/load_data.h"
#include "job/check_job.h"
#include "job/check_strategy.h"
#include "model/make_model.h"
#include "server/shard_parts.h"
#include "tensor/flat_space.h"
#include "train/launch.h"
#include "train/run_folder.h"
#include "train/server_report.h"
#include "train/slow_workers.h"
#include "train/worker_trace.h"

namespace cohort {
namespace {

/// The job as it will run: the environment's number of workers wins over the file's.
Job resolve(Job job, const std::optional<LaunchEnvironment>& environment) {
  if (environment) job.cluster.workers = environment->world;
  if (job.cluster.servers == 0 && uses_servers(job.strategy)) job.cluster.servers = 1;
  check_job(job);
  if (environment && job.cluster.replication == "in-graph" && environment->world > 1) {
    fail(ErrorCode::invalid,
         "replication in-graph runs all workers in one process, but WORLD_SIZE={} asks for as many "
         "processes; use between-graph",
         environment->world);
  }
  return job;
}

/// The servers are the business of the launcher that has rank 0.
std::vector<ProcessPlan> plan_processes(const Job& job,
                                        const std::optional<LaunchEnvironment>& environment) {
  const auto world = static_cast<int>(job.cluster.workers);
  const auto servers = static_cast<int>(job.cluster.servers);
  const bool remote = environment && world > 1;
  std::vector<ProcessPlan> plans;
  if (!environment && job.cluster.replication == "in-graph" && world + servers > 1) {
    ProcessPlan all{.world = world};
    for (int rank = 0; rank < world; ++rank) all.ranks.push_back(rank);
    for (int server = 0; server < servers; ++server) all.servers.push_back(server);
    return {all};
  }
  if (environment) {
    plans.push_back({.ranks = {environment->rank}, .world = world, .remote = remote});
  } else {
    for (int rank = 0; rank < world; ++rank) {
      plans.push_back({.ranks = {rank}, .world = world, .place = {rank, world}});
    }
  }
  for (int server = 0; server < servers && (!environment || environment->rank == 0); ++server) {
    plans.push_back({.servers = {server}, .world = world, .remote = remote});
  }
  return plans;
}

TaskSummary task_summary(const std::string& role, std::size_t rank, const TaskIdentity& task) {
  return {.role = role,
          .rank = static_cast<int>(rank),
          .host = task.host.data(),
          .pid = task.pid,
          .peak_rss_bytes = task.peak_rss_bytes,
          .steps = {},
          .step_seconds = {},
          .wait_seconds = {}};
}

void fill_from_workers(Summary& summary, const Job& job, const ControlBlock& control) {
  const auto slots = control.slots();
  const WorkerResult& chief = slots.front().result;
  summary.engine = chief.engine.data();
  summary.steps = chief.steps > 0 ? chief.steps : slots.front().step.load();
  summary.epochs = chief.epochs;
  if (chief.has_validation) summary.loss = chief.validation_loss;
  if (chief.has_accuracy) summary.accuracy = chief.accuracy;
  double samples_per_second = 0;
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    const WorkerResult& result = slots[rank].result;
    summary.samples += result.samples;
    samples_per_second += result.samples_per_second;
    summary.bytes_sent += static_cast<std::int64_t>(result.bytes_sent);
    summary.bytes_received += static_cast<std::int64_t>(result.bytes_received);
    for (std::size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
      summary.phase_seconds[std::string(kPhaseNames[phase])] +=
          result.phase_seconds[phase] / static_cast<double>(job.cluster.workers);
    }
    TaskSummary task = task_summary(rank == 0 ? "chief" : "worker", rank, result.task);
    task.steps = result.own_steps;
    task.step_seconds = result.step_seconds;
    task.wait_seconds = result.phase_seconds[static_cast<std::size_t>(Phase::wait)];
    summary.tasks.push_back(std::move(task));
  }
  if (samples_per_second > 0) summary.samples_per_second = samples_per_second;
}

void fill_from_servers(Summary& summary, std::span<const ServerSlot> servers) {
  if (servers.empty()) return;
  summary.staleness = summarize_staleness(servers);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    summary.tasks.push_back(task_summary("server", i, servers[i].task));
  }
}

void set_status(Summary& summary, const LaunchResult& result) {
  summary.status = "completed";
  for (const WorkerFailure& failure : result.failures) {
    summary.failures.push_back(describe(failure));
  }
  if (result.signal != 0) {
    summary.status = "interrupted";
    summary.exit_code = 128 + result.signal;
  } else if (!result.failures.empty()) {
    summary.status = "failed";
    summary.exit_code = exit_code(result.failures.front());
  }
}

std::string closing_line(const Summary& summary) {
  std::string text = fmt::format("{}: {} steps, {:.2f} epochs in {:.1f} s", summary.status,
                                 summary.steps, summary.epochs, summary.seconds);
  if (summary.samples_per_second)
    text += fmt::format(", {:.0f} samples/s", *summary.samples_per_second);
  if (summary.loss) text += fmt::format(", validation loss {:.4f}", *summary.loss);
  if (summary.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *summary.accuracy);
  if (summary.workers > 1) text += "\n" + describe_workers(summary.tasks);
  return text + fmt::format("\nrun folder: {}", summary.run_dir);
}

/// One run, seen from the process that starts its workers.
class Run {
 public:
  Run(const Job& job, const RunOptions& options)
      : start_(Clock::now()),
        environment_(launch_environment([](const char* name) { return std::getenv(name); })),
        job_(resolve(job, environment_)),
        options_(options),
        data_(load_data(job_.data, job_.seed)),
        control_(static_cast<int>(job_.cluster.workers), static_cast<int>(job_.cluster.servers)) {
    check_fit();
    control_.set_total_steps(total_steps(job_.train, data_.train->size()));
    if (is_chief_host()) folder_.emplace(job_, options.run_dir);
    if (!is_chief_host()) options_.quiet = true;
  }

  Summary execute() {
    const auto plans = plan_processes(job_, environment_);
    const WorkerRun run{.job = job_,
                        .data = data_,
                        .control = control_,
                        .run_dir = run_dir(),
                        .cores = usable_cores()};
    Rendezvous rendezvous(environment_);
    Progress progress(options_, control_, static_cast<int>(job_.cluster.workers),
                      plans.front().ranks.front());
    announce(progress);
    const LaunchResult result =
        launch_workers({run, plans, rendezvous, progress,
                        [this](const ProcessPlan& plan) { return log_of(plan); }});
    Summary summary = summarize(result);
    if (folder_) {
      merge_traces(run_dir(), static_cast<int>(job_.cluster.workers));
      write_file_atomically(run_dir() / "summary.json", to_json(summary));
    }
    progress.say(closing_line(summary));
    return summary;
  }

 private:
  bool is_chief_host() const { return !environment_ || environment_->rank == 0; }
  std::filesystem::path run_dir() const { return folder_ ? folder_->path() : ""; }

  std::filesystem::path log_of(const ProcessPlan& plan) const {
    if (!folder_) return "";
    return folder_->log_of(plan.ranks.empty() ? fmt::format("server-{}", plan.servers.front())
                                              : fmt::format("worker-{}", plan.ranks.front()));
  }

  /// What can only be known with the data at hand, said before any worker is started.
  void check_fit() const {
    if (job_.model.make) return;
    const auto model = make_model(job_.model, data_.spec, job_.seed);
    if (job_.cluster.servers <= 1) return;
    const std::size_t parts = most_servers(ModelLayout::of(*model).parameters.size);
    if (static_cast<std::size_t>(job_.cluster.servers) <= parts) return;
    fail(ErrorCode::invalid,
         "cluster.servers is {}, but the model's parameters fill at most {} server{}; set it to {} "
         "or less",
         job_.cluster.servers, parts, parts == 1 ? "" : "s", parts);
  }

  void announce(Progress& progress) const {
    if (!data_.note.empty()) progress.say(data_.note);
    const auto counted = [](std::int64_t count, const char* what) {
      return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    const std::int64_t servers = job_.cluster.servers;
    progress.say(fmt::format("{}: {} samples, {}{}, strategy {}, run folder {}", job_.name,
                             data_.train->size(), counted(job_.cluster.workers, "worker"),
                             servers == 0 ? "" : ", " + counted(servers, "server"),
                             job_.strategy.kind, folder_ ? folder_->path().string() : "on rank 0"));
  }

  Summary summarize(const LaunchResult& result) const {
    Summary summary;
    summary.strategy = job_.strategy.kind;
    summary.workers = job_.cluster.workers;
    summary.servers = job_.cluster.servers;
    summary.run_dir = run_dir().string();
    fill_from_workers(summary, job_, control_);
    if (is_chief_host()) fill_from_servers(summary, control_.servers());
    set_status(summary, result);
    summary.seconds = seconds_since(start_);
    return summary;
  }

  Clock::time_point start_;
  std::optional<LaunchEnvironment> environment_;
  Job job_;
  RunOptions options_;
  LoadedData data_;
  ControlBlock control_;
  std::optional<RunFolder> folder_;
};

}  // namespace

Summary train(const Job& job, const RunOptions& options) {
  forbid_compute_threads();
  return Run(job, options).execute();
}

}  // namespace cohort
