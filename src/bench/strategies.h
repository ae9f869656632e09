#pragma once

#include <string>
#include <vector>

namespace cohort {

struct StrategiesOptions {
  std::string job_file;
  std::vector<std::string> overrides;  ///< As `cohort train --set` takes them; for every strategy.
  std::vector<std::string> only;       ///< Labels or parts of them; empty: all.
  std::string folder;                  ///< Where runs, table and plot go; it must not exist yet.
  bool quick = false;                  ///< A few steps each, to see that everything runs.
};

/// Trains one job with every strategy, one after the other, and compares them: prints a table, and
/// writes strategies.md (the table), strategies.json and strategies.svg (loss against time and
/// against bytes) into the folder, beside the runs' own. Returns the exit code: 1 where a run
/// failed.
int compare_strategies(const StrategiesOptions& options);

}  // namespace cohort
