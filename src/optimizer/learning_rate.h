#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cohort::optimizer {

/// The learning rate of every step, a pure function of the job and the step's number: workers need
/// not tell each other, and a resumed run goes on as if it had never stopped.
///
///   rate = schedule(step) * warm-up(step) * workers (where asked for) * decay_of_rate(step)

/// A way in which the rate changes.
struct ScheduleRow {
  std::string name;
  std::vector<std::string> keys;  ///< Of `[train.schedule]`, that only some read.
  std::string words;
};
std::vector<ScheduleRow> schedule_table();

/// The learning rate of step `step` (the first is 0) of `total_steps`, but for decay_of_rate(). The
/// warm-up grows linearly over the first warmup_steps steps, and the schedule does not wait for its
/// end, except the cosine, which begins there.
double learning_rate(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
                     std::int64_t total_steps, std::int64_t workers);

/// No step has a larger rate, with no more workers than these: a little above the largest, for
/// rounding.
double most_learning_rate(const ScheduleOptions& schedule, double base_lr, std::int64_t total_steps,
                          std::int64_t workers);

/// What the rate of step `step` is multiplied by besides, on the optimizer's own account: adagrad's
/// lr_decay. It counts steps of the job, whoever makes them and in however many updates.
double decay_of_rate(const OptimizerOptions& optimizer, std::int64_t step);

/// Throws Error(invalid) for a schedule that makes no sense.
void check_schedule(const ScheduleOptions& schedule);

}  // namespace cohort::optimizer
