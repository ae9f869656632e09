#include "train/run/run_here.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "data/load_data.h"
#include "data/sampler.h"
#include "job/check_job.h"
#include "kernel/kernel_report.h"
#include "kinds/strategy_table.h"
#include "launch/launch.h"
#include "launch/slow_workers.h"
#include "model/make_model.h"
#include "os/descriptor_limit.h"
#include "os/shared_wait.h"
#include "server/memory/shard_parts.h"
#include "strategy/strategy.h"
#include "tensor/flat_space.h"
#include "train/loop/chief_log.h"
#include "train/loop/worker_trace.h"
#include "train/run/run_folder.h"
#include "train/run/server_memories.h"
#include "train/run/server_report.h"
#include "train/run/summary_json.h"
#include "train/run/worker_process.h"
#include "train/state/start_state.h"

namespace cohort {
namespace {

/// The job as it will run: the environment's number of workers wins over the file's.
Job resolve(Job job, const std::optional<LaunchEnvironment>& environment) {
  if (environment) job.cluster.workers = environment->world;
  if (job.cluster.servers == 0 && uses_servers(job.strategy.kind)) job.cluster.servers = 1;
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

/// Processes that one launcher starts as workers at most, at the start or later.
constexpr int kMostWorkers = 1024;

/// Threads cannot be replaced one by one, and workers of other launchers are their business.
bool can_regroup(const Job& job, const std::optional<LaunchEnvironment>& environment) {
  const bool threads =
      job.cluster.replication == "in-graph" && job.cluster.workers + job.cluster.servers > 1;
  return !threads && !(environment && job.cluster.workers > 1);
}

/// As many as the run could have been started with: every worker has a sample of each batch.
int most_workers(const Job& job, const std::optional<LaunchEnvironment>& environment) {
  const std::int64_t workers = job.cluster.workers;
  if (!can_regroup(job, environment)) return static_cast<int>(workers);
  if (workers > kMostWorkers) {
    fail(ErrorCode::invalid, "cluster.workers is {}; one launcher starts at most {}", workers,
         kMostWorkers);
  }
  const std::int64_t shares = job.train.batch / std::max<std::int64_t>(job.train.accumulate, 1);
  return static_cast<int>(std::clamp<std::int64_t>(shares, workers, kMostWorkers));
}

std::string task_name(const ProcessPlan& plan) {
  return plan.ranks.empty() ? fmt::format("server-{}", plan.servers.front())
                            : fmt::format("worker-{}", plan.ranks.front());
}

/// `faults` is a list of TASK:FAILPOINTS, separated by semicolons. Only the first process of a task
/// has them: the one that takes its place lives.
void plant_faults(std::vector<ProcessPlan>& plans, const std::string& faults) {
  std::istringstream items(faults);
  for (std::string item; std::getline(items, item, ';');) {
    const auto colon = item.find(':');
    const auto plan = std::ranges::find_if(plans, [&](const ProcessPlan& candidate) {
      return task_name(candidate) == item.substr(0, colon);
    });
    if (colon == std::string::npos || plan == plans.end()) {
      fail(ErrorCode::invalid,
           "fault \"{}\" names no task of this run, as in worker-1:worker.step=kill@20", item);
    }
    if (!plan->failpoints.empty()) plan->failpoints += ',';
    plan->failpoints += item.substr(colon + 1);
    set_failpoints(plan->failpoints);  // Refuses what it does not understand.
    set_failpoints("");
  }
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

void fill_from_workers(Summary& summary, const ControlBlock& control) {
  const auto slots = control.slots();
  const WorkerSlot& chief_slot = control.slot(control.chief());
  const WorkerResult& chief = chief_slot.result;
  summary.engine = chief.engine.data();
  summary.steps = chief.steps > 0 ? chief.steps : chief_slot.step.load();
  summary.epochs = chief.epochs;
  if (chief.has_validation) summary.loss = chief.validation_loss;
  if (chief.has_accuracy) summary.accuracy = chief.accuracy;
  double samples_per_second = 0;
  const auto counted = static_cast<double>(
      std::ranges::count_if(slots, [](const auto& slot) { return slot.result.own_steps > 0; }));
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    if (slots[rank].state.load() == WorkerState::absent) continue;
    const WorkerResult& result = slots[rank].result;
    summary.samples += std::max(result.samples, slots[rank].samples.load());
    if (!control.is_sent_away(static_cast<int>(rank)))
      samples_per_second += result.samples_per_second;
    summary.bytes_sent += static_cast<std::int64_t>(result.bytes_sent);
    summary.bytes_received += static_cast<std::int64_t>(result.bytes_received);
    for (std::size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
      summary.phase_seconds[std::string(kPhaseNames[phase])] +=
          result.phase_seconds[phase] / std::max(counted, 1.0);
    }
    const bool is_chief = static_cast<int>(rank) == control.chief();
    TaskSummary task = task_summary(is_chief ? "chief" : "worker", rank, result.task);
    task.steps = result.own_steps;
    task.step_seconds = result.step_seconds;
    task.wait_seconds = result.phase_seconds[static_cast<std::size_t>(Phase::wait)];
    summary.tasks.push_back(std::move(task));
  }
  if (samples_per_second > 0) summary.samples_per_second = samples_per_second;
}

/// `reports`: what the servers' memory says, where it outlives them.
void fill_from_servers(Summary& summary, std::span<const ServerSlot> servers,
                       std::vector<ServerReport> reports) {
  if (servers.empty()) return;
  if (reports.empty()) {
    for (const ServerSlot& server : servers) reports.push_back(server.report);
  }
  summary.staleness = summarize_staleness(reports);
  summary.shards = summarize_shards(reports);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    summary.tasks.push_back(task_summary("server", i, servers[i].task));
  }
}

void set_status(Summary& summary, const LaunchResult& result, const ControlBlock& control) {
  summary.status = "completed";
  for (const auto* failures : {&result.failures, &result.recovered}) {
    for (const WorkerFailure& failure : *failures) summary.failures.push_back(describe(failure));
  }
  summary.restarts = result.restarts;
  // Nobody finishes before the chief has saved; what happened to it afterwards does not matter.
  const bool finished = std::ranges::any_of(
      control.slots(), [](const WorkerSlot& slot) { return slot.finished.load(); });
  if (finished && result.failures.empty()) return;
  if (result.signal != 0) {
    summary.status = "interrupted";
    const bool may_go_on = result.signal == SIGTERM || result.signal == SIGUSR1;
    summary.exit_code = may_go_on && control.is_saved() ? kExitRetry : 128 + result.signal;
    // 128 + SIGUSR1 would say that going on may help.
    if (result.signal == SIGUSR1 && !control.is_saved()) summary.exit_code = kExitFailed;
  } else if (!result.failures.empty()) {
    summary.status = "failed";
    summary.exit_code = exit_code(result.failures.front());
  } else {
    // Another launcher's worker was asked to stop, and all have.
    summary.status = "interrupted";
    summary.exit_code = kExitRetry;
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

using Variables = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> environment_of(const Variables& variables) {
  return launch_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// One run, seen from the process that starts its workers.
class LaunchedRun {
 public:
  LaunchedRun(const Job& job, const RunOptions& options, const Variables& variables)
      : start_(Clock::now()),
        environment_(environment_of(variables)),
        job_(resolve(job, environment_)),
        options_(options),
        data_(load_data(job_.data, job_.seed)),
        control_(most_workers(job_, environment_), static_cast<int>(job_.cluster.servers)) {
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
        start_from_.empty() ? 0 : Checkpoint(start_from_, [](const auto&) { return false; }).step();
    cut_metrics(run_dir() / "metrics.jsonl", steps);
    return steps;
  }

  Summary execute() {
    auto plans = plan_processes(job_, environment_);
    plant_faults(plans, options_.faults);
    const WorkerRun run{.job = job_,
                        .data = data_,
                        .control = control_,
                        .run_dir = run_dir(),
                        .start_from = start_from_,
                        .cores = usable_cores(),
                        .part_work = part_work(job_, data_.spec),
                        .server_memories = server_memories_.spans(),
                        .server_replicas = server_memories_.replicas()};
    Rendezvous rendezvous(environment_);
    control_.set_chief(plans.front().ranks.front());
    Progress progress(options_, control_, static_cast<int>(job_.cluster.workers));
    announce(progress);
    RunStatus status(run_dir());
    UserRequests requests(run_dir());
    const auto log = [this](const ProcessPlan& plan) { return log_of(plan); };
    ForkedProcesses processes(
        [&](const ProcessPlan& plan) { return run_process(run, plan, rendezvous); }, log);
    const LaunchResult result =
        launch_workers({.cluster = job_.cluster,
                        .traits = way_of(job_.strategy).traits,
                        .steps_alone = steps_alone(
                            job_.strategy, steps_per_epoch(data_.train->size(), job_.train.batch)),
                        .control = control_,
                        .processes = processes,
                        .plans = plans,
                        .progress = progress,
                        .status = status,
                        .requests = requests,
                        .regroups = can_regroup(job_, environment_),
                        .log_of = log,
                        .serve = [&] { rendezvous.serve(); },
                        .settle_servers = [&] { settle_servers(progress); }});
    Summary summary = summarize(result);
    if (folder_) {
      merge_traces(run_dir(), static_cast<int>(control_.slots().size()));
      write_file_atomically(run_dir() / "summary.json", to_json(summary));
    }
    progress.say(closing_line(summary));
    return summary;
  }

 private:
  bool is_chief_host() const { return !environment_ || environment_->rank == 0; }

  std::filesystem::path log_of(const ProcessPlan& plan) const {
    if (!folder_) return "";
    return folder_->log_of(task_name(plan));
  }

  /// The threads of each worker; 0 where the job does not say and other launchers start some on
  /// this host, nobody knows yet how many.
  int local_threads() const {
    const auto workers = static_cast<int>(job_.cluster.workers);
    if (environment_ && workers > 1) return static_cast<int>(job_.cluster.threads);
    return threads_of_worker(job_.cluster, {.cores = usable_cores(),
                                            .local_workers = workers,
                                            .part_work = part_work(job_, data_.spec)});
  }

  void settle_servers(Progress& progress) {
    for (const int server : server_memories_.settle()) {
      progress.say(fmt::format(
          "the memory of server {} was lost; its part of the model is taken from its copy",
          server));
    }
  }

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
    const auto model = make_model(job_.model, data_.spec, job_.seed);
    const ModelLayout layout = ModelLayout::of(*model);
    most_checkpoint_bytes_ = most_checkpoint_bytes(layout.parameters.size + layout.buffers.size);
    if (job_.cluster.servers > 1) check_servers(most_servers(layout.parameters.size));
    if (lasting) server_memories_ = ServerMemories(job_, *model);
  }

  void check_servers(std::size_t most) const {
    if (static_cast<std::size_t>(job_.cluster.servers) <= most) return;
    fail(ErrorCode::invalid,
         "cluster.servers is {}, but the model's parameters fill at most {} server{}; set it to {} "
         "or less",
         job_.cluster.servers, most, most == 1 ? "" : "s", most);
  }

  void announce(Progress& progress) const {
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
    progress.say(fmt::format("kernels: {}{}", one_line(kernel_report(threads)),
                             threads == 0 ? "" : "; " + counted(threads, "thread") + " each"));
  }

  Summary summarize(const LaunchResult& result) {
    Summary summary;
    summary.strategy = job_.strategy.kind;
    summary.workers = job_.cluster.workers;
    summary.servers = job_.cluster.servers;
    summary.run_dir = run_dir().string();
    fill_from_workers(summary, control_);
    if (can_regroup(job_, environment_) && way_of(job_.strategy).traits.loss_stops_all) {
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
      const Cursor cursor = cursor_after(step, size, job_.train.batch);
      return cursor.epoch * size + cursor.offset;
    };
    return until(steps) - until(first_step);
  }

  Clock::time_point start_;
  std::optional<LaunchEnvironment> environment_;
  Job job_;
  RunOptions options_;
  LoadedData data_;
  ControlBlock control_;
  std::optional<RunFolder> folder_;
  ServerMemories server_memories_;
  std::uint64_t most_checkpoint_bytes_ = kAnySize;
  std::filesystem::path start_from_;
  std::vector<std::string> start_notes_;
};

}  // namespace

void check_run(const Job& job, const Variables& environment) {
  resolve(job, environment_of(environment));
}

Summary run_here(const Job& job, const RunOptions& options, const Variables& environment,
                 const OnRunFolder& on_folder) {
  forbid_compute_threads();
  raise_descriptor_limit();
  LaunchedRun run(job, options, environment);
  if (!run.run_dir().empty()) on_folder(run.run_dir(), run.goes_on_after());
  return run.execute();
}

}  // namespace cohort
