#include "base/fail.h"
#include "base/nearest_name.h"
#include "bench/benchmarks.h"

namespace cohort {

void run_bench_worker(const std::vector<std::string>& words) {
  if (words.empty()) fail(ErrorCode::invalid, "usage: cohort bench worker sum|train ...");
  check_known("bench worker", words[0], {"sum", "training"});
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  words[0] == "sum" ? run_sum_worker(rest) : run_train_worker(rest);
}

}  // namespace cohort
