#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

/// A way in which the rate changes.
struct ScheduleRow {
  std::string name;
  std::vector<std::string> keys;  ///< Of `[train.schedule]`, that only some read.
  std::string words;
};
std::vector<ScheduleRow> schedule_table();

/// The learning rate of step `step` (the first is 0) of `total_steps`.
double learning_rate(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
                     std::int64_t total_steps, std::int64_t workers);

/// What the rate of step `step` is multiplied by besides, on the optimizer's own account: adagrad's
/// lr_decay. It counts steps of the job, whoever makes them and in however many updates.
double decay_of_rate(const OptimizerOptions& optimizer, std::int64_t step);

/// Throws Error(invalid) for a schedule that makes no sense.
void check_schedule(const ScheduleOptions& schedule);

}  // namespace cohort
