#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/sum_timing.h"

/// How every contender of `cohort bench ps` times what a worker does with its servers, Cohort and
/// peers alike. Header only: the peers are programs that link nothing of Cohort.

namespace cohort {

/// A worker's three ways to talk to its servers; each is done when the answers are there.
inline const std::vector<std::string>& server_call_names() {
  static const std::vector<std::string> names = {"push", "pull", "push and pull"};
  return names;
}

/// The line a contender prints: seconds by call and size, as in {"push 4": 1e-6}.
class ServerTimings {
 public:
  void add(const std::string& call, std::size_t bytes, double seconds) {
    char field[96];
    std::snprintf(field, sizeof field, "\"%s %zu\": %.9g", call.c_str(), bytes, seconds);
    line_ += (line_.empty() ? "" : ", ") + std::string(field);
  }
  void print() const {
    std::printf("{%s}\n", line_.c_str());
    std::fflush(stdout);
  }

 private:
  std::string line_;
};

}  // namespace cohort
