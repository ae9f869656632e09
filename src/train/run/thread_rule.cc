#include "train/run/thread_rule.h"

#include <algorithm>

namespace cohort {
namespace {

/// Networks of one hidden layer on two cores of a machine with other work: how many times as fast
/// two threads are as one, by multiplications forward, in the best of five runs and in the median.
/// 1.6 million: 1.0 and 0.8; 6.5: 1.0 and 0.7; 26: 1.35 and 1.3; 51: 1.5 and 1.0; 102: 1.6 and 1.1.
constexpr double kLeastWorkOfThread = 5e6;

}  // namespace

int threads_for(const ThreadChoice& choice) {
  const int share = std::max(1, choice.cores / choice.local_workers);
  if (!choice.part_work) return share;
  const double worth = std::max(1.0, *choice.part_work / kLeastWorkOfThread);
  return worth < share ? static_cast<int>(worth) : share;
}

}  // namespace cohort
