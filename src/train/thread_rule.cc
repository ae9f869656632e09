#include "train/thread_rule.h"

#include <algorithm>

namespace cohort {
namespace {

/// Networks of one hidden layer on two cores, the best of three runs each: with 1.6 million
/// multiplications forward two threads are slower than one (0.9 times as fast), with 6.5 million
/// faster (1.2), with 13 and 26 million more so (1.3).
constexpr double kLeastWorkOfThread = 2e6;

}  // namespace

int threads_for(const ThreadChoice& choice) {
  const int share = std::max(1, choice.cores / choice.local_workers);
  if (!choice.part_work) return share;
  const double worth = std::max(1.0, *choice.part_work / kLeastWorkOfThread);
  return worth < share ? static_cast<int>(worth) : share;
}

}  // namespace cohort
