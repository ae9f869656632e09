#pragma once

#include <string>
#include <vector>

namespace cohort::bench {

/// The words of `cohort bench strategies JOB`.
struct StrategiesOptions {
  std::string job_file;
  std::vector<std::string> overrides;  ///< As `cohort train --set` takes them; for every strategy.
  std::vector<std::string> only;       ///< Labels or parts of them; empty: all.
  std::string folder;                  ///< Where runs, table and plot go; it must not exist yet.
  bool quick = false;                  ///< A few steps each, to see that everything runs.
};

/// Trains one job with every strategy, one after the other, and compares them. Unlike a Benchmark
/// it has no peers and no rounds: one run each, as long as the job says. What is compared is what a
/// strategy learns for its time and its bytes.
///
/// Prints a table, and writes into the folder, beside the runs' own:
///
///   strategies.md     the table
///   strategies.json   the figures and the kernels that they were measured with
///   strategies.svg    loss against time and against bytes
///
/// A run that fails is told and does not cost the others' results. Returns the exit code: 1 where a
/// run failed. Throws Error(invalid) where the folder exists or `only` names no strategy, and what
/// load_job() throws.
int compare_strategies(const StrategiesOptions& options);

}  // namespace cohort::bench
