#include "os/cores.h"

#include <sched.h>

namespace cohort::os {

std::vector<int> usable_core_numbers() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> share_of_cores(const std::vector<int>& cores, int place, int processes) {
  const auto count = static_cast<int>(cores.size());
  if (processes > count) return {};
  const auto begin = cores.begin() + count * place / processes;
  const auto end = cores.begin() + count * (place + 1) / processes;
  return {begin, end};
}

void run_on_cores(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

void bind_to_share(const LocalPlace& place) {
  run_on_cores(share_of_cores(usable_core_numbers(), place.local_rank, place.local_workers));
}

}  // namespace cohort::os
