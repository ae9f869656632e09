#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

/// How every contender of `cohort bench allreduce` and `cohort bench ps` times a call, Cohort and
/// peers alike, so that all are timed the same way. Header only: the peers are programs that link
/// nothing of Cohort.
///
/// A contender gets words BYTES:REPEATS, one for each size, and prints one line of JSON at the end:
///
///   allreduce   sums of arrays       {"1024": 3.1e-06, "65536": 2.2e-05}          by size in bytes
///   ps          calls of servers     {"push 4": 1.2e-06, "pull 4": 1.1e-06, …}    by call and size
///
/// The value is the seconds of one call as rank or worker 0 saw it.

namespace cohort::bench {

/// The middle value; of an even number of values the mean of the two in the middle. Throws
/// std::logic_error where there is none.
inline double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("median of no values");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// ---- what is timed

/// One size to time: an array of `count` floats, and how often it is summed or sent in a row.
struct TimingPlan {
  std::size_t count = 0;
  int repeats = 0;
};

/// How often a size is timed in one round: some tenths of a second for whoever goes through memory,
/// and for whoever goes through sockets, which takes much longer for small sizes.
struct TimedSize {
  std::size_t bytes;
  int repeats;
  int repeats_by_socket;
};

/// The words that tell a contender to time these sizes; `repeats` says which of the two counts.
inline std::vector<std::string> plan_words(const std::vector<TimedSize>& sizes,
                                           int TimedSize::*repeats) {
  std::vector<std::string> words;
  for (const auto& size : sizes) {
    words.push_back(std::to_string(size.bytes) + ":" + std::to_string(size.*repeats));
  }
  return words;
}

/// Plans from words like "1024:500": bytes and repeats. Throws std::invalid_argument.
inline std::vector<TimingPlan> parse_plans(const std::vector<std::string>& words) {
  std::vector<TimingPlan> plans;
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

/// Seconds one call of `call` takes: the median of up to nine blocks of calls, after a tenth of
/// them unmeasured. Makes the same number of calls on every rank, since each waits for the others.
template <class Call>
double seconds_per_call(int repeats, Call&& call) {
  for (int i = 0; i < std::max(1, repeats / 10); ++i) call();
  const int blocks = std::min(9, repeats);
  const int calls = repeats / blocks;
  std::vector<double> seconds;
  for (int block = 0; block < blocks; ++block) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count() / calls);
  }
  return median(seconds);
}

// ---- sums

/// What rank's buffer holds before the sum that is checked, and what all hold after it.
inline float contribution_of(int rank) {
  return static_cast<float>(rank + 1);
}
inline float expected_sum(int world) {
  return static_cast<float>(world * (world + 1)) / 2;
}

/// Throws std::runtime_error for a sum that is wrong: who is fast and wrong is not measured.
template <class Floats>
void check_sum(const Floats& sum, int world) {
  const float expected = expected_sum(world);
  if (!std::all_of(sum.begin(), sum.end(), [&](float x) { return x == expected; })) {
    throw std::runtime_error("the sum is wrong");
  }
}

// ---- calls of servers

/// A worker's three ways to talk to its servers; each is done when the answers are there.
inline const std::vector<std::string>& server_call_names() {
  static const std::vector<std::string> names = {"push", "pull", "push and pull"};
  return names;
}

// ---- what is printed

/// The line that a contender prints at the end.
class TimingLine {
 public:
  /// `name` is the size in bytes, after the name of the call where there are several.
  void add(const std::string& name, double seconds) {
    char value[64];
    std::snprintf(value, sizeof value, "%.9g", seconds);
    line_ += (line_.empty() ? "\"" : ", \"") + name + "\": " + value;
  }
  void print() const {
    std::printf("{%s}\n", line_.c_str());
    std::fflush(stdout);
  }

 private:
  std::string line_;
};

/// The whole line of a contender that sums.
inline void print_sums(const std::vector<TimingPlan>& plans, const std::vector<double>& seconds) {
  TimingLine line;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    line.add(std::to_string(plans[i].count * sizeof(float)), seconds[i]);
  }
  line.print();
}

/// The whole line of a contender that calls servers is made of these: one call at one size.
inline void add_call(TimingLine& line, const std::string& call, const TimingPlan& plan,
                     double seconds) {
  line.add(call + " " + std::to_string(plan.count * sizeof(float)), seconds);
}

}  // namespace cohort::bench
