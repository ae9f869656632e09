#pragma once

#include <cohort/job.h>

#include <cstdint>

namespace cohort {

/// The learning rate of step `step` (the first is 0) of `total_steps`.
double learning_rate(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
                     std::int64_t total_steps, std::int64_t workers);

/// Throws Error(invalid) for a schedule that makes no sense.
void check_schedule(const ScheduleOptions& schedule);

}  // namespace cohort
