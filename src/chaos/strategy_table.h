#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kinds/strategy_table.h"

namespace cohort {

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
  StrategyTraits traits = {};
  std::int64_t steps_per_push = 1;
  /// Trains not the user's job but one whose model tells how far it was moved; see movement.h.
  bool movement = false;
};

/// All of them, for a run with so many workers: every row of kinds/strategy_table.h, all-reduce in
/// more than one form. Those that do not move the model exactly are there twice: with the user's
/// job, and with the one for movement.
std::vector<TestedStrategy> all_tested_strategies(const ClusterSize& size);

/// Those that `names` lists, separated by commas; all where it is empty. Throws Error(invalid)
/// naming the nearest known one.
std::vector<TestedStrategy> choose_strategies(const std::string& names, const ClusterSize& size);

}  // namespace cohort
