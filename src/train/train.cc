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
#include "model/make_model.h"
#include "train/launch.h"
#include "train/run_folder.h"
#include "train/worker_trace.h"

namespace cohort {
namespace {

/// The job as it will run: the environment's number of workers wins over the file's.
Job resolve(Job job, const std::optional<LaunchEnvironment>& environment) {
  if (environment) job.cluster.workers = environment->world;
  check_job(job);
  if (environment && job.cluster.replication == "in-graph" && environment->world > 1) {
    fail(ErrorCode::invalid,
         "replication in-graph runs all workers in one process, but WORLD_SIZE={} asks for as many "
         "processes; use between-graph",
         environment->world);
  }
  return job;
}

std::vector<ProcessPlan> plan_processes(const Job& job,
                                        const std::optional<LaunchEnvironment>& environment) {
  const auto world = static_cast<int>(job.cluster.workers);
  if (environment) {
    return {{.ranks = {environment->rank}, .world = world, .remote = world > 1, .place = {}}};
  }
  if (job.cluster.replication == "in-graph" && world > 1) {
    ProcessPlan all{.ranks = {}, .world = world, .remote = false, .place = {}};
    for (int rank = 0; rank < world; ++rank) all.ranks.push_back(rank);
    return {all};
  }
  std::vector<ProcessPlan> plans;
  for (int rank = 0; rank < world; ++rank) {
    plans.push_back({.ranks = {rank}, .world = world, .remote = false, .place = {rank, world}});
  }
  return plans;
}

void fill_from_workers(Summary& summary, const Job& job, const ControlBlock& control) {
  const auto slots = control.slots();
  const WorkerResult& chief = slots.front().result;
  summary.engine = chief.engine.data();
  summary.steps = chief.steps > 0 ? chief.steps : slots.front().step.load();
  summary.epochs = chief.epochs;
  summary.samples = chief.samples;
  if (chief.samples_per_second > 0) summary.samples_per_second = chief.samples_per_second;
  if (chief.has_validation) summary.loss = chief.validation_loss;
  if (chief.has_accuracy) summary.accuracy = chief.accuracy;
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    const WorkerResult& result = slots[rank].result;
    summary.bytes_sent += static_cast<std::int64_t>(result.bytes_sent);
    summary.bytes_received += static_cast<std::int64_t>(result.bytes_received);
    for (std::size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
      summary.phase_seconds[std::string(kPhaseNames[phase])] +=
          result.phase_seconds[phase] / static_cast<double>(job.cluster.workers);
    }
    summary.tasks.push_back({rank == 0 ? "chief" : "worker", static_cast<int>(rank),
                             result.host.data(), result.pid, result.peak_rss_bytes});
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
        control_(static_cast<int>(job_.cluster.workers)) {
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
    const LaunchResult result = launch_workers(
        {run, plans, rendezvous, progress, [this](int rank) { return log_of(rank); }});
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

  std::filesystem::path log_of(int rank) const {
    return folder_ ? folder_->log_of("worker-" + std::to_string(rank)) : "";
  }

  /// What can only be known with the data at hand, said before any worker is started.
  void check_fit() const {
    if (!job_.model.make) make_model(job_.model, data_.spec, job_.seed);
  }

  void announce(Progress& progress) const {
    if (!data_.note.empty()) progress.say(data_.note);
    progress.say(fmt::format("{}: {} samples, {} worker{}, strategy {}, run folder {}", job_.name,
                             data_.train->size(), job_.cluster.workers,
                             job_.cluster.workers == 1 ? "" : "s", job_.strategy.kind,
                             folder_ ? folder_->path().string() : "on rank 0"));
  }

  Summary summarize(const LaunchResult& result) const {
    Summary summary;
    summary.strategy = job_.strategy.kind;
    summary.workers = job_.cluster.workers;
    summary.servers = job_.cluster.servers;
    summary.run_dir = run_dir().string();
    fill_from_workers(summary, job_, control_);
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
