#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chaos/strategy_table.h"

namespace cohort {

/// A run that is over.
struct FinishedRun {
  std::filesystem::path run_dir;
  nlohmann::json summary = {};  ///< Null where it left none.
  int losses = 0;               ///< A step may be applied just when nobody is left to log it.
  std::optional<double> moved_steps = {};  ///< Where the model tells; see movement.h.
};

/// What faults did to the result of a run that they should not have, compared with a run of the
/// same job that was left alone: a sentence each. Steps and status count for all; samples, and that
/// every step was logged once (but for one with every loss), for those whose loss stops all; for
/// the others that all servers have applied the same pushes, each once; how far the model was
/// moved, where it tells; parameters where the strategy promises them; accuracy where there is one,
/// which may be 0.5 points lower.
std::vector<std::string> differences(const TestedStrategy& strategy, const FinishedRun& quiet,
                                     const FinishedRun& disturbed);

/// The largest difference between values of two model files. Throws Error where they do not have
/// the same tensors.
double largest_difference(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace cohort
