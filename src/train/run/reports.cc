#include "train/run/reports.h"

#include <signal.h>

#include <algorithm>

#include "base/log.h"
#include "cluster/exit_code.h"
#include "cluster/task_name.h"
#include "train/run/worker_report.h"

namespace cohort::training {
namespace {

std::string report_key(const cluster::Store& store, int rank) {
  return "report" + store.mark_of_rank(rank);
}

TaskSummary task_summary(const std::string& role, std::size_t rank,
                         const launch::TaskIdentity& task) {
  return {.role = role,
          .rank = static_cast<int>(rank),
          .host = task.host.data(),
          .pid = task.pid,
          .peak_rss_bytes = task.peak_rss_bytes,
          .steps = {},
          .step_seconds = {},
          .wait_seconds = {}};
}

}  // namespace

void send_report(cluster::Store& store, int rank, const launch::WorkerResult& result) {
  store.set(report_key(store, rank), to_text(result));
}

// In the launcher of rank 0: what workers of other launchers have sent comes onto their cards, as
// if they had filled them in themselves. One that does not report, or reports something else, is
// left out of the summary; the training is done by then, and does not fail by it.
void collect_reports(cluster::Store& store, launch::ControlBlock& control, Deadline deadline) {
  for (int rank = 1; rank < static_cast<int>(control.cards().size()); ++rank) {
    try {
      launch::WorkerCard& card = control.card(rank);
      card.result = worker_result_from(store.get(report_key(store, rank), deadline));
      card.state.store(launch::TaskState::done);
    } catch (const Error& error) {
      log_warn("rank {} did not report its result: {}", rank, error.what());
    }
  }
}

// Counts are added up, over all workers that ever were; what is one and the same for all (steps,
// losses) is the chief's. The mean of the phases is over those who made steps. A worker that was
// sent away, because fewer were wanted, has trained, but its speed is not the run's any more.
void fill_from_workers(Summary& summary, const launch::ControlBlock& control) {
  const auto cards = control.cards();
  const launch::WorkerCard& chief_card = control.card(control.chief());
  const launch::WorkerResult& chief = chief_card.result;
  summary.engine = chief.engine.data();
  summary.steps = chief.steps > 0 ? chief.steps : chief_card.step.load();
  summary.epochs = chief.epochs;
  if (chief.has_validation) summary.loss = chief.validation_loss;
  if (chief.has_accuracy) summary.accuracy = chief.accuracy;
  double samples_per_second = 0;
  const auto counted = static_cast<double>(
      std::ranges::count_if(cards, [](const auto& card) { return card.result.own_steps > 0; }));
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].state.load() == launch::TaskState::absent) continue;
    const launch::WorkerResult& result = cards[rank].result;
    summary.samples += std::max(result.samples, cards[rank].samples.load());
    if (!control.is_sent_away(static_cast<int>(rank)))
      samples_per_second += result.samples_per_second;
    summary.bytes_sent += static_cast<std::int64_t>(result.bytes_sent);
    summary.bytes_received += static_cast<std::int64_t>(result.bytes_received);
    summary.left_out += static_cast<std::int64_t>(result.left_out);
    for (std::size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
      summary.phase_seconds[std::string(kPhaseNames[phase])] +=
          result.phase_seconds[phase] / std::max(counted, 1.0);
    }
    const bool is_chief = static_cast<int>(rank) == control.chief();
    TaskSummary task = task_summary(is_chief ? "chief" : cluster::kWorkerRole, rank, result.task);
    task.steps = result.own_steps;
    task.step_seconds = result.step_seconds;
    task.wait_seconds = result.phase_seconds[static_cast<std::size_t>(Phase::wait)];
    summary.tasks.push_back(std::move(task));
  }
  if (samples_per_second > 0) summary.samples_per_second = samples_per_second;
}

StalenessSummary summarize_staleness(std::span<const cluster::ServerReport> servers) {
  StalenessSummary summary;
  double sum = 0;
  std::int64_t pushes = 0;
  for (const cluster::ServerReport& server : servers) {
    const cluster::PushCounts& counts = server.counts;
    summary.applied += static_cast<std::int64_t>(counts.applied);
    summary.dropped += static_cast<std::int64_t>(counts.dropped);
    summary.not_finite += static_cast<std::int64_t>(counts.not_finite);
    summary.duplicates += static_cast<std::int64_t>(counts.duplicates);
    summary.missing += static_cast<std::int64_t>(counts.missing);
    summary.max = std::max(summary.max, static_cast<std::int64_t>(counts.staleness_max));
    sum += counts.staleness_sum;
    for (const auto& [staleness, count] : counts.histogram()) {
      summary.histogram[static_cast<std::int64_t>(staleness)] += static_cast<std::int64_t>(count);
      pushes += static_cast<std::int64_t>(count);
    }
  }
  if (pushes > 0) summary.mean = sum / static_cast<double>(pushes);
  return summary;
}

std::vector<ShardSummary> summarize_shards(std::span<const cluster::ServerReport> servers) {
  std::vector<ShardSummary> all;
  for (const auto& [version, counts] : servers) {
    all.push_back({.server = static_cast<int>(all.size()),
                   .version = static_cast<std::int64_t>(version),
                   .applied = static_cast<std::int64_t>(counts.applied),
                   .dropped = static_cast<std::int64_t>(counts.dropped),
                   .duplicates = static_cast<std::int64_t>(counts.duplicates),
                   .missing = static_cast<std::int64_t>(counts.missing),
                   .fingerprint = counts.fingerprint});
  }
  return all;
}

void fill_from_servers(Summary& summary, std::span<const launch::ServerCard> servers,
                       std::vector<cluster::ServerReport> reports) {
  if (servers.empty()) return;
  if (reports.empty()) {
    for (const launch::ServerCard& server : servers) reports.push_back(server.report);
  }
  summary.staleness = summarize_staleness(reports);
  summary.shards = summarize_shards(reports);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    summary.tasks.push_back(task_summary(cluster::kServerRole, i, servers[i].task));
  }
}

// How the run ended, in this order: somebody has trained to the end and nothing failed for good; it
// was asked to stop; it failed; another launcher's was asked to stop. Who asked politely and can go
// on from a checkpoint is told to try again (138).
void set_status(Summary& summary, const launch::LaunchResult& result,
                const launch::ControlBlock& control) {
  summary.status = "completed";
  for (const auto* failures : {&result.failures, &result.recovered}) {
    for (const launch::TaskFailure& failure : *failures)
      summary.failures.push_back(launch::describe(failure));
  }
  summary.restarts = result.restarts;
  // Nobody finishes before the chief has saved; what happened to it afterwards does not matter.
  const bool finished = std::ranges::any_of(
      control.cards(), [](const launch::WorkerCard& card) { return card.finished.load(); });
  if (finished && result.failures.empty()) return;
  if (result.signal != 0) {
    summary.status = "interrupted";
    const bool may_go_on = result.signal == SIGTERM || result.signal == SIGUSR1;
    summary.exit_code = may_go_on && control.is_saved() ? cluster::kExitRetry : 128 + result.signal;
    // 128 + SIGUSR1 would say that going on may help.
    if (result.signal == SIGUSR1 && !control.is_saved()) summary.exit_code = cluster::kExitFailed;
  } else if (!result.failures.empty()) {
    summary.status = "failed";
    summary.exit_code = launch::exit_code(result.failures.front());
  } else {
    // Another launcher's worker was asked to stop, and all have.
    summary.status = "interrupted";
    summary.exit_code = cluster::kExitRetry;
  }
}

}  // namespace cohort::training
