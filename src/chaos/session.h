#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chaos/strategy_table.h"

namespace cohort {

/// What is tested, and how hard.
struct ChaosOptions {
  std::string job_file;
  std::vector<std::string> overrides;  ///< As `cohort train --set` takes them; the last word.
  std::filesystem::path folder;        ///< Where the runs and the report go; new or empty.
  std::uint64_t seed = 1;
  double minutes = 10;     ///< No round is begun after these.
  int events = 0;          ///< 0: as many as the time allows.
  std::string strategies;  ///< Names separated by commas; empty: all.
  double freeze_seconds = 20;
  double slow_seconds = 5;
  double hang_seconds = 60;  ///< Without a step for so long, a run hangs.

  std::filesystem::path slow_disk = {};  ///< The library that delays fsync; empty: there is none.

  ClusterSize size;                                ///< Of the job.
  double silence_lost_seconds = 15;                ///< Of the job.
  std::vector<std::string> cluster_settings = {};  ///< Of the job: how long to wait for whom.
};

/// The words after `cohort train` for a run of the job in `run_dir` with a strategy. The settings
/// that chaos needs come first, then `more`, then the strategy's, then the user's, which win.
std::vector<std::string> train_words(const ChaosOptions& options, const TestedStrategy& strategy,
                                     const std::filesystem::path& run_dir,
                                     const std::vector<std::string>& more);

}  // namespace cohort
