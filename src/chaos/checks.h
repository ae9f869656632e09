#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chaos/chaos_options.h"

namespace cohort::chaos {

/// What faults did to the result of a run, found by comparison with a run of the same job and
/// strategy that was left alone, the *quiet* run.
///
/// What can be compared depends on what the strategy promises (kinds/strategy_table.h). Some end
/// with the same parameters, whoever died. Where workers do not go in step, no two runs end alike
/// and learning hides much, so the pushes are counted, and for some jobs the movement of the model
/// is measured (movement.h).
///
///   what                             for which strategies        how exactly
///   status, number of steps          all                         equal
///   samples                          a loss stops all            equal
///   steps in metrics.jsonl           a loss stops all            each once, one may lack per loss
///   what the servers have counted    others with servers         shard_disagreements()
///   how far the model was moved      with the job for movement   2 %
///   parameters                       a loss changes nothing      1e-4
///   accuracy                         where the job has one       at most 0.005 lower

/// A run that is over.
struct FinishedRun {
  std::filesystem::path run_dir;
  nlohmann::json summary = {};  ///< Null where it left none.
  /// Of tasks. With every one a step may be missing in the log: it may have been applied just when
  /// nobody was left to log it.
  int losses = 0;
  std::optional<double> moved_steps = {};  ///< Where the model tells; see movement.h.
};

/// What faults did to the result of a run that they should not have: a sentence each, none where
/// nothing was lost. `quiet` has a summary. Throws Error where a model file cannot be read.
std::vector<std::string> differences(const TestedStrategy& strategy, const FinishedRun& quiet,
                                     const FinishedRun& disturbed);

/// How many pushes the servers of a run must account for.
struct ExpectedPushes {
  std::optional<std::int64_t> count = {};  ///< How many there must be, where that is known.
  std::int64_t losses = 0;                 ///< Of tasks.
};

/// Whether all servers of a run have applied the same pushes, each once, by what summary.json says
/// each has counted (`shards`): a sentence for everything that does not agree. A push goes to all
/// of them in parts, so a part that one lacks or has twice shows in its counts. A worker that is
/// killed between its pushes to two servers takes the second one with it: that is told as
/// `missing`, once for each task that was lost at most. So on every server
///
///   applied + missing              is the same as on server 0, and so is dropped
///   applied + missing + dropped    is the expected count
///   missing                        is at most the number of tasks that were lost
std::vector<std::string> shard_disagreements(const nlohmann::json& summary,
                                             const ExpectedPushes& expected);

/// The largest difference between float32 values of two model files. Throws Error where `other`
/// lacks a tensor of `one` or has it in another size.
double largest_difference(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace cohort::chaos
