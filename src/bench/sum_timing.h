#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/statistics.h"

/// How every contender of `cohort bench allreduce` times a sum, Cohort and peers alike, so that
/// all are timed the same way. Header only: the peers are programs that link nothing of Cohort.

namespace cohort {

/// One size to time: an array of `count` floats, summed `repeats` times in a row.
struct SumPlan {
  std::size_t count = 0;
  int repeats = 0;
};

/// Plans from words like "1024:500": bytes and repeats.
inline std::vector<SumPlan> parse_sum_plans(const std::vector<std::string>& words) {
  std::vector<SumPlan> plans;
  for (const auto& word : words) {
    std::size_t bytes = 0;
    int repeats = 0;
    if (std::sscanf(word.c_str(), "%zu:%d", &bytes, &repeats) != 2 || bytes < 4 || repeats < 1) {
      throw std::invalid_argument("\"" + word + "\" is not BYTES:REPEATS");
    }
    plans.push_back({bytes / sizeof(float), repeats});
  }
  return plans;
}

/// Seconds one call of `sum` takes: the median of up to nine blocks of calls, after a tenth of
/// them unmeasured. Makes the same number of calls on every rank.
template <class Sum>
double seconds_per_sum(int repeats, Sum&& sum) {
  for (int i = 0; i < std::max(1, repeats / 10); ++i) sum();
  const int blocks = std::min(9, repeats);
  const int calls = repeats / blocks;
  std::vector<double> seconds;
  for (int block = 0; block < blocks; ++block) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) sum();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count() / calls);
  }
  return median(seconds);
}

/// What rank's buffer holds before the sum that is checked, and what all hold after it.
inline float contribution_of(int rank) {
  return static_cast<float>(rank + 1);
}
inline float expected_sum(int world) {
  return static_cast<float>(world * (world + 1)) / 2;
}

template <class Floats>
void check_sum(const Floats& sum, int world) {
  const float expected = expected_sum(world);
  if (!std::all_of(sum.begin(), sum.end(), [&](float x) { return x == expected; })) {
    throw std::runtime_error("the sum is wrong");
  }
}

/// The line a contender prints: seconds by size in bytes.
inline void print_sums(const std::vector<SumPlan>& plans, const std::vector<double>& seconds) {
  std::string line;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    char field[64];
    std::snprintf(field, sizeof field, "\"%zu\": %.9g", plans[i].count * sizeof(float), seconds[i]);
    line += (i == 0 ? "" : ", ") + std::string(field);
  }
  std::printf("{%s}\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace cohort
