#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

/// One process or thread of a run.
struct TaskSummary {
  std::string role;
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t peak_rss_bytes = 0;
  std::optional<std::int64_t> steps;   ///< Workers: those it took part in.
  std::optional<double> step_seconds;  ///< Workers: that it was busy with one, on average.
  std::optional<double> wait_seconds;  ///< Workers: that it stood still for others, in all.
};

/// How old the parameters were that pushed gradients were computed with, in updates.
struct StalenessSummary {
  double mean = 0;
  std::int64_t max = 0;
  std::map<std::int64_t, std::int64_t> histogram;  ///< Pushes by their staleness.
  std::int64_t applied = 0;
  std::int64_t dropped = 0;     ///< Late, or not finite, and left out.
  std::int64_t not_finite = 0;  ///< Of those dropped: with a number that is infinite or none.
  std::int64_t duplicates = 0;  ///< Came twice; applied once.
  /// Never came, though later ones did, or others of the servers have it.
  std::int64_t missing = 0;
};

/// What one server counted. Each has a part of every push, so all should have counted the same.
struct ShardSummary {
  int server = 0;
  std::int64_t version = 0;  ///< Updates it has made.
  std::int64_t applied = 0;
  std::int64_t dropped = 0;
  std::int64_t duplicates = 0;
  std::int64_t missing = 0;
  std::uint64_t fingerprint = 0;  ///< Equal where the same pushes were applied, each as often.
};

/// How a run went: the fields of summary.json, by the same names.
struct Summary {
  std::string status;  ///< completed, failed, interrupted.
  std::string strategy;
  std::string engine;
  std::int64_t workers = 0;
  std::int64_t servers = 0;
  std::int64_t steps = 0;
  double epochs = 0;
  std::int64_t samples = 0;
  double seconds = 0;
  std::optional<double> samples_per_second;
  std::optional<double> loss;      ///< On the validation set.
  std::optional<double> accuracy;  ///< On the validation set; only where targets are classes.
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t left_out =
      0;  ///< Messages of gossip that could not be used: numbers that are not finite.
  std::int64_t restarts = 0;
  std::vector<std::string> failures;
  std::optional<StalenessSummary> staleness;    ///< Where there are servers.
  std::vector<ShardSummary> shards;             ///< Where there are servers.
  std::map<std::string, double> phase_seconds;  ///< The mean over the workers.
  std::vector<TaskSummary> tasks;
  std::string run_dir;
  int exit_code = 0;  ///< What `cohort train` exits with.
};

/// What a run shows and where it writes, apart from what it computes.
struct RunOptions {
  std::string run_dir;  ///< Empty: runs/<name>-<date>-<time>.
  /// What to go on from: `auto` is the newest checkpoint in run_dir, if there is one; otherwise the
  /// folder of another run or of a checkpoint. Empty: nothing.
  std::string resume = {};
  bool quiet = false;
  bool json_log = false;
  /// For trials of what happens when tasks fail: TASK:POINT=ACTION[@N], separated by semicolons, as
  /// in "worker-1:worker.step=kill@20"; docs/failures.md has the points and actions.
  std::string faults = {};
  /// What the ranks of several hosts say to each other is not encrypted, and may be seen on the
  /// network between them. Without this, or COHORT_INSECURE=1, such a run is refused.
  bool insecure = false;
};

/// Trains `job` and returns when it is over: start() and Run::wait() of cohort/run.h, with this
/// process' signals and its launch environment (RANK, WORLD_SIZE …). The workers run the job's
/// functions in processes of their own; the caller's only waits for them, and its thread settings
/// stay as they are. (No other thread may be within a computation of several BLAS threads when it
/// is called; a program whose threads compute uses start().) Throws Error for a wrong job; a run
/// that started and failed is reported in Summary::status, ::failures and ::exit_code.
Summary train(const Job& job, const RunOptions& options = {});

}  // namespace cohort
