#include "os/cores.h"

#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace cohort::os {
namespace {

std::vector<int> usable_core_numbers() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

void bind_to_share(const LocalPlace& place) {
  const auto cores = usable_core_numbers();
  const auto count = static_cast<int>(cores.size());
  if (place.local_workers > count) return;
  cpu_set_t share;
  CPU_ZERO(&share);
  const int begin = count * place.local_rank / place.local_workers;
  const int end = count * (place.local_rank + 1) / place.local_workers;
  for (int i = begin; i < end; ++i) CPU_SET(cores[static_cast<std::size_t>(i)], &share);
  ::sched_setaffinity(0, sizeof share, &share);
}

bool is_bound() {
  return static_cast<long>(usable_core_numbers().size()) < ::sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace cohort::os
