#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/schedule.h"

namespace cohort {

/// Schedules by the names a job file uses. "auto" picks by the number of ranks and elements. An
/// unknown name is an Error(invalid) that lists the known ones.

struct AlgorithmRow {
  std::string name;
  std::string words;
};
std::vector<AlgorithmRow> algorithm_table();

/// ring, direct, tree, auto.
const std::vector<std::string>& all_reduce_algorithms();
Schedule all_reduce_schedule(std::string_view algorithm, int rank, int world, std::size_t count);
/// The same where ranks are on these hosts: what auto means may depend on it.
Schedule all_reduce_schedule(std::string_view algorithm, int rank, std::span<const int> hosts,
                             std::size_t count);

/// ring, direct, auto: those that work on a segment per rank.
const std::vector<std::string>& segment_algorithms();
Schedule reduce_scatter_schedule(std::string_view algorithm, int rank, int world,
                                 std::size_t count);
Schedule all_gather_schedule(std::string_view algorithm, int rank, int world, std::size_t count);

}  // namespace cohort
