// What workers of other launchers report at their end.

#include "targets.h"
#include "train/run/worker_report.h"

namespace cohort::fuzz {

void report(Bytes input) {
  const auto found = training::worker_result_from(std::string(text_of(input)));
  require(found.samples >= 0 && found.task.host.back() == '\0', "a report is one that can be");
}

Seeds report_seeds() {
  launch::WorkerResult result;
  result.steps = 7;
  result.samples = 448;
  result.phase_seconds[1] = 0.25;
  launch::put_text(result.task.host, "host-1");
  return {training::to_text(result)};
}

}  // namespace cohort::fuzz
