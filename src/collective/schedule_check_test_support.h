#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collective/schedule.h"

namespace cohort::collective {

/// What a set of schedules does, found by running them on symbols instead of numbers.
///
/// A send is taken to be complete only when its receive has started, the strictest a transport can
/// be; and since no rank can choose between messages, an order that works once works always.
struct ScheduleOutcome {
  /// The first thing that is wrong, or empty: a deadlock, sizes that differ, a message to oneself,
  /// a step that breaks the rules of schedule.h.
  std::string problem;

  /// Cell c is the elements [cuts[c], cuts[c + 1]); no segment cuts a cell.
  std::vector<std::size_t> cuts;

  /// [rank][cell]: the sum that is there at the end, "(0+1)+2" for parts 0, 1 and 2 of that cell.
  /// Equal texts are equal bits.
  std::vector<std::vector<std::string>> sums;

  /// [rank][cell][part]: how many times that rank's part is in the sum.
  std::vector<std::vector<std::vector<int>>> parts;

  /// [rank][other]: whether `other` must have begun before `rank` can end.
  std::vector<std::vector<bool>> heard_of;
};

/// Runs `schedules[rank]` of all ranks together on buffers of `count` elements.
ScheduleOutcome check_schedules(const std::vector<Schedule>& schedules, std::size_t count);

}  // namespace cohort::collective
