#include "launch/slow_workers.h"

#include <fmt/format.h>

#include <algorithm>

namespace cohort {
namespace {

constexpr double kSlow = 2;

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<SlowWorker> slow_workers(std::span<const double> step_seconds) {
  std::vector<double> known;
  std::ranges::copy_if(step_seconds, std::back_inserter(known), [](double s) { return s > 0; });
  if (known.size() < 2) return {};
  const double median = lower_median(std::move(known));
  std::vector<SlowWorker> slow;
  for (std::size_t rank = 0; rank < step_seconds.size(); ++rank) {
    if (step_seconds[rank] < kSlow * median) continue;
    slow.push_back({static_cast<int>(rank), step_seconds[rank], median});
  }
  return slow;
}

std::string describe(const SlowWorker& slow) {
  return fmt::format("worker {} is slow: {:.1f} ms for a step, the median is {:.1f} ms", slow.rank,
                     1e3 * slow.step_seconds, 1e3 * slow.median);
}

std::string describe_workers(const std::vector<TaskSummary>& tasks) {
  std::string lines;
  for (const TaskSummary& task : tasks) {
    if (!task.step_seconds) continue;
    lines += fmt::format("{}worker {}: {} steps, {:.1f} ms each, waited {:.1f} s",
                         lines.empty() ? "" : "\n", task.rank, task.steps.value_or(0),
                         1e3 * *task.step_seconds, task.wait_seconds.value_or(0));
  }
  return lines;
}

}  // namespace cohort
