#include "base/fail.h"
#include "base/nearest_name.h"
#include "bench/benchmarks.h"

namespace cohort {

void run_bench_worker(const std::vector<std::string>& words) {
  if (words.empty()) fail(ErrorCode::invalid, "usage: cohort bench worker sum|training|ps ...");
  check_known("bench worker", words[0], {"sum", "training", "ps"});
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "sum") return run_sum_worker(rest);
  if (words[0] == "ps") return run_ps_worker(rest);
  run_train_worker(rest);
}

}  // namespace cohort
