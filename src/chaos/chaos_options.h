#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kinds/strategy_table.h"

namespace cohort::chaos {

/// What is tested, and how hard: the options of a session, the strategies it takes turns with, and
/// the words by which one of them is trained.

/// How many tasks a run under test has.
struct ClusterSize {
  int workers = 0;
  int servers = 0;  ///< Of the strategies that have any.
};

/// A way to train that shall survive every fault, by the name it has in reports.
struct TestedStrategy {
  std::string name;
  std::vector<std::string> settings;  ///< As `cohort train --set` takes them.
  int servers = 0;
  /// What the strategy promises; which checks apply follows from it.
  kinds::StrategyTraits traits = {};
  /// How many of a worker's steps one push to the servers stands for.
  std::int64_t steps_per_push = 1;
  /// Trains not the user's job but one whose model tells how far it was moved; see movement.h.
  bool movement = false;
};

/// The options of one session. Plain data: whoever fills it (cli/chaos_command.cc) reads the job
/// once and notes what chaos must know of it, since this room does not read job files.
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

  // What the job says.
  ClusterSize size;
  double silence_lost_seconds = 15;
  std::vector<std::string> cluster_settings =
      {};  ///< How long to wait for whom, as --set takes it.
};

/// All of them, for a run of that size: every row of kinds/strategy_table.h, all-reduce in more
/// than one form. Those that do not move the model exactly are there twice: with the user's job,
/// and with the one for movement, as NAME-movement.
std::vector<TestedStrategy> all_tested_strategies(const ClusterSize& size);

/// Those that `names` lists, separated by commas; all where it is empty. Throws Error(invalid)
/// naming the nearest known one.
std::vector<TestedStrategy> choose_strategies(const std::string& names, const ClusterSize& size);

/// The words after `cohort train` for a run of the job in `run_dir` with a strategy. A later
/// setting wins over an earlier one: first come those that chaos needs (1000 restarts, a log line
/// for every step), then `more`, then the strategy's, then the user's.
std::vector<std::string> train_words(const ChaosOptions& options, const TestedStrategy& strategy,
                                     const std::filesystem::path& run_dir,
                                     const std::vector<std::string>& more);

}  // namespace cohort::chaos
