#include "optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/fail.h"
#include "base/names.h"

namespace cohort::optimizer {
namespace {

double constant(const ScheduleOptions&, double base_lr, std::int64_t, std::int64_t) {
  return base_lr;
}

double cut_in_steps(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
                    std::int64_t) {
  return base_lr * std::pow(schedule.gamma, static_cast<double>(step / schedule.step_size));
}

/// Half a cosine from the base rate, at the first step after the warm-up, to the final rate at the
/// last step.
double cosine(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
              std::int64_t total_steps) {
  const std::int64_t first = schedule.warmup_steps;
  const std::int64_t length = std::max<std::int64_t>(total_steps - 1 - first, 1);
  const std::int64_t done = std::clamp<std::int64_t>(step - first, 0, length);
  const double progress = static_cast<double>(done) / static_cast<double>(length);
  const double height = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return schedule.final_lr + (base_lr - schedule.final_lr) * height;
}

double warm_up(const ScheduleOptions& schedule, std::int64_t step) {
  if (step >= schedule.warmup_steps) return 1;
  return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
}

// Every rate is a pure function of the step, so a run that is resumed, and a worker that comes
// late, has the rate that all have. The warm-up multiplies whatever the schedule says; a cosine
// begins after it, the others count their steps from the first.
struct RowAndRate : ScheduleRow {
  double (*rate)(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
                 std::int64_t total_steps);
};

const std::vector<RowAndRate>& schedule_rows() {
  static const std::vector<RowAndRate> all = {
      {{"constant", {}, "the same rate for all steps"}, constant},
      {{"step", {"step_size", "gamma"}, "cut again and again"}, cut_in_steps},
      {{"cosine", {"final_lr"}, "half a cosine down to the last step"}, cosine},
  };
  return all;
}

}  // namespace

std::vector<ScheduleRow> schedule_table() {
  return {schedule_rows().begin(), schedule_rows().end()};
}

double learning_rate(const ScheduleOptions& schedule, double base_lr, std::int64_t step,
                     std::int64_t total_steps, std::int64_t workers) {
  const auto& row = row_named("schedule kind", schedule.kind, schedule_rows());
  const double rate = row.rate(schedule, base_lr, step, total_steps);
  const double scale = schedule.scale_by_workers ? static_cast<double>(workers) : 1;
  return rate * warm_up(schedule, step) * scale;
}

// Every schedule goes one way, so the largest rate is that of an end; the warm-up makes none larger.
double most_learning_rate(const ScheduleOptions& schedule, double base_lr, std::int64_t total_steps,
                          std::int64_t workers) {
  constexpr double kRounding = 1 + 1e-9;
  ScheduleOptions warm = schedule;
  warm.warmup_steps = 0;
  const std::int64_t last = std::max<std::int64_t>(total_steps - 1, 0);
  return kRounding * std::max(learning_rate(warm, base_lr, 0, total_steps, workers),
                              learning_rate(warm, base_lr, last, total_steps, workers));
}

double decay_of_rate(const OptimizerOptions& optimizer, std::int64_t step) {
  if (optimizer.kind != "adagrad") return 1;
  return 1 / (1 + static_cast<double>(step) * optimizer.lr_decay);
}

void check_schedule(const ScheduleOptions& schedule) {
  row_named("schedule kind", schedule.kind, schedule_rows());
  if (schedule.warmup_steps < 0) {
    fail(ErrorCode::invalid, "schedule warmup_steps is {}; it must be at least 0",
         schedule.warmup_steps);
  }
  if (schedule.kind == "step" && schedule.step_size < 1) {
    fail(ErrorCode::invalid, "schedule step_size is {}; kind \"step\" needs at least 1",
         schedule.step_size);
  }
  if (!std::isfinite(schedule.gamma) || schedule.gamma <= 0) {
    fail(ErrorCode::invalid, "schedule gamma is {}; it must be a finite number above 0",
         schedule.gamma);
  }
  if (!std::isfinite(schedule.final_lr) || schedule.final_lr < 0) {
    fail(ErrorCode::invalid, "schedule final_lr is {}; it must be a finite number of at least 0",
         schedule.final_lr);
  }
}

}  // namespace cohort::optimizer
