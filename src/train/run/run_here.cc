#include "train/run/run_here.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "base/files.h"
#include "checkpoint/checkpoint.h"
#include "data/load_data.h"
#include "data/sampler.h"
#include "kernel/kernel_report.h"
#include "kinds/strategy_table.h"
#include "launch/launch.h"
#include "launch/progress.h"
#include "launch/requests.h"
#include "launch/run_status.h"
#include "model/make_model.h"
#include "os/shared_wait.h"
#include "os/this_process.h"
#include "server/wire/shard_shape.h"
#include "strategy/strategy.h"
#include "tensor/flat_space.h"
#include "train/loop/chief_log.h"
#include "train/loop/worker_trace.h"
#include "train/run/compute_threads.h"
#include "train/run/reports.h"
#include "train/run/run_folder.h"
#include "train/run/run_plan.h"
#include "train/run/server_memories.h"
#include "train/run/summary_text.h"
#include "train/run/worker_process.h"
#include "train/state/start_state.h"

namespace cohort::training {
namespace {

/// One run, seen from the process that starts its workers. The constructor does all that can be
/// refused (the job, the data, the model, the folder), execute() all that takes long. What workers
/// need is read here once, and theirs by fork().
class LaunchedRun {
 public:
  LaunchedRun(const Job& job, const RunOptions& options, const Variables& variables)
      : start_(Clock::now()),
        environment_(environment_of(variables)),
        job_(resolved_job(job, environment_)),
        options_(options),
        data_(data::load_data(job_.data, job_.seed)),
        control_(most_workers(job_, environment_), static_cast<int>(job_.cluster.servers)) {
    if (environment_) {
      environment_->insecure |= options.insecure;
      cluster::check_trust(*environment_);
    }
    prepare_model();
    control_.set_total_steps(total_steps(job_.train, data_.train->size()));
    if (is_chief_host()) {
      if (!options.resume.empty()) find_start();
      folder_.emplace(job_, options.run_dir, options.resume == "auto", local_threads());
    }
    if (!is_chief_host()) options_.quiet = true;
  }

  /// Empty where the run has its folder elsewhere.
  std::filesystem::path run_dir() const { return folder_ ? folder_->path() : ""; }

  /// Steps that were done before this run; cuts off the metrics of those that are done again.
  std::int64_t goes_on_after() const {
    const std::int64_t steps =
        start_from_.empty()
            ? 0
            : checkpoint::Checkpoint(start_from_, [](const auto&) { return false; }).step();
    cut_metrics(run_dir() / "metrics.jsonl", steps);
    return steps;
  }

  /// Starts the workers and returns when all have ended. The order is the order of fork(): what all
  /// processes share is made before launch_workers(), what only this one may have (the thread of
  /// the store's server) is started by `serve` after the first forks.
  Summary execute() {
    auto plans = plan_processes(job_, environment_);
    plant_faults(plans, options_.faults);
    const WorkerRun run{.job = job_,
                        .data = data_,
                        .control = control_,
                        .run_dir = run_dir(),
                        .start_from = start_from_,
                        .cores = os::usable_cores(),
                        .part_work = part_work(job_, data_.spec),
                        .server_memories = server_memories_.spans(),
                        .server_replicas = server_memories_.replicas()};
    meet::Rendezvous rendezvous(environment_);
    control_.set_chief(plans.front().workers.front());
    launch::Progress progress(options_, control_, static_cast<int>(job_.cluster.workers));
    announce(progress);
    launch::RunStatus status(run_dir());
    launch::UserRequests requests(run_dir());
    const auto log = [this](const launch::ProcessPlan& plan) { return log_of(plan); };
    launch::ForkedProcesses processes(
        [&](const launch::ProcessPlan& plan) { return run_process(run, plan, rendezvous); }, log);
    const launch::LaunchResult result = launch::launch_workers(
        {.cluster = job_.cluster,
         .traits = kinds::way_of(job_.strategy).traits,
         .steps_alone = strategy::steps_alone(
             job_.strategy, data::steps_per_epoch(data_.train->size(), job_.train.batch)),
         .control = control_,
         .processes = processes,
         .plans = plans,
         .progress = progress,
         .status = status,
         .requests = requests,
         .regroups = can_regroup(job_, environment_),
         .log_of = log,
         .serve = [&] { rendezvous.serve(); },
         .reconcile_servers = [&] { reconcile_servers(progress); }});
    Summary summary = summarize(result);
    if (folder_) {
      merge_traces(run_dir(), static_cast<int>(control_.cards().size()));
      write_file_atomically(run_dir() / "summary.json", to_json(summary));
    }
    progress.say(closing_line(summary));
    return summary;
  }

 private:
  bool is_chief_host() const { return !environment_ || environment_->rank == 0; }

  std::filesystem::path log_of(const launch::ProcessPlan& plan) const {
    if (!folder_) return "";
    return folder_->log_of(launch::task_name(plan, '-'));
  }

  /// The threads of each worker; 0 where the job does not say and other launchers start some on
  /// this host, nobody knows yet how many.
  int local_threads() const {
    const auto workers = static_cast<int>(job_.cluster.workers);
    if (environment_ && workers > 1) return static_cast<int>(job_.cluster.threads);
    return threads_of_worker(job_.cluster, {.cores = os::usable_cores(),
                                            .local_workers = workers,
                                            .part_work = part_work(job_, data_.spec)});
  }

  void reconcile_servers(launch::Progress& progress) {
    for (const int server : server_memories_.reconcile()) {
      progress.say(fmt::format(
          "the memory of server {} was lost; its part of the model is taken from its copy",
          server));
    }
  }

  /// The checkpoint that the user means.
  void find_start() {
    if (options_.resume == "auto" && options_.run_dir.empty()) {
      fail(ErrorCode::invalid, "--resume auto goes on with the run in --run-dir, so name that too");
    }
    if (options_.resume == "auto") check_nobody_runs_in(options_.run_dir);
    start_from_ =
        find_checkpoint(options_.resume, options_.run_dir, most_checkpoint_bytes_, start_notes_);
  }

  /// What can only be known with the data at hand, before any worker is started.
  void prepare_model() {
    const bool lasting = can_regroup(job_, environment_) && job_.cluster.servers > 0;
    if (job_.model.make && !lasting) return;
    const auto model = model::make_model(job_.model, data_.spec, job_.seed);
    const tensor::ModelLayout layout = tensor::ModelLayout::of(*model);
    most_checkpoint_bytes_ = most_checkpoint_bytes(layout.parameters.size + layout.buffers.size);
    if (job_.cluster.servers > 1) check_servers(server::most_servers(layout.parameters.size));
    if (lasting) server_memories_ = ServerMemories(job_, *model);
  }

  void check_servers(std::size_t most) const {
    if (static_cast<std::size_t>(job_.cluster.servers) <= most) return;
    fail(ErrorCode::invalid,
         "cluster.servers is {}, but the model's parameters fill at most {} server{}; set it to {} "
         "or less",
         job_.cluster.servers, most, most == 1 ? "" : "s", most);
  }

  void announce(launch::Progress& progress) const {
    if (!data_.note.empty()) progress.say(data_.note);
    for (const std::string& note : start_notes_) progress.say(note);
    const auto counted = [](std::int64_t count, const char* what) {
      return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    const std::int64_t servers = job_.cluster.servers;
    progress.say(fmt::format("{}: {} samples, {}{}, strategy {}, run folder {}", job_.name,
                             data_.train->size(), counted(job_.cluster.workers, "worker"),
                             servers == 0 ? "" : ", " + counted(servers, "server"),
                             job_.strategy.kind, folder_ ? folder_->path().string() : "on rank 0"));
    const int threads = local_threads();
    progress.say(fmt::format("kernels: {}{}", kernel::one_line(kernel::kernel_report(threads)),
                             threads == 0 ? "" : "; " + counted(threads, "thread") + " each"));
  }

  Summary summarize(const launch::LaunchResult& result) {
    Summary summary;
    summary.strategy = job_.strategy.kind;
    summary.workers = job_.cluster.workers;
    summary.servers = job_.cluster.servers;
    summary.run_dir = run_dir().string();
    fill_from_workers(summary, control_);
    if (can_regroup(job_, environment_) && kinds::way_of(job_.strategy).traits.loss_stops_all) {
      summary.samples = samples_between(control_.first_step(), summary.steps);
    }
    if (is_chief_host()) {
      fill_from_servers(summary, control_.servers(), server_memories_.reports());
    }
    set_status(summary, result, control_);
    summary.seconds = seconds_since(start_);
    return summary;
  }

  /// Where all make every step together: a worker that was lost cannot tell what it did.
  std::int64_t samples_between(std::int64_t first_step, std::int64_t steps) const {
    const std::int64_t size = data_.train->size();
    const auto until = [&](std::int64_t step) {
      const data::Cursor cursor = data::cursor_after(step, size, job_.train.batch);
      return cursor.epoch * size + cursor.offset;
    };
    return until(steps) - until(first_step);
  }

  Clock::time_point start_;
  std::optional<cluster::LaunchEnvironment>
      environment_;  // Where others have started launchers, too.
  Job job_;          // As it runs.
  RunOptions options_;
  data::LoadedData data_;
  launch::ControlBlock control_;
  std::optional<RunFolder> folder_;  // Where this launcher has rank 0.
  ServerMemories server_memories_;   // None where servers end with their workers.
  std::uint64_t most_checkpoint_bytes_ = checkpoint::kAnySize;
  std::filesystem::path start_from_;  // A checkpoint; empty: the model as it is made.
  std::vector<std::string> start_notes_;
};

}  // namespace

Summary run_here(const Job& job, const RunOptions& options, const Variables& environment,
                 const OnRunFolder& on_folder) {
  forbid_compute_threads();
  os::raise_descriptor_limit();
  LaunchedRun run(job, options, environment);
  if (!run.run_dir().empty()) on_folder(run.run_dir(), run.goes_on_after());
  return run.execute();
}

}  // namespace cohort::training
