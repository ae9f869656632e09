#pragma once

#include <vector>

namespace cohort::os {

/// The processor cores of this process, and which of them each of several processes of one host is to
/// use that compute at the same time.

/// The numbers of the cores this process may run on, which in a container, or under taskset, are
/// fewer than the machine has. Empty where the system does not say.
std::vector<int> usable_core_numbers();

/// The part of `cores` that belongs to one of `processes` which share them, by its place among them:
/// cores side by side. Empty where there are more processes than cores: then all share all.
std::vector<int> share_of_cores(const std::vector<int>& cores, int place, int processes);

/// Binds the calling thread, and what it starts from now on, to these cores; empty: to none. Where
/// the system refuses, it stays as it is. May be called between fork() and exec().
void run_on_cores(const std::vector<int>& cores);

/// The place of a process among those of its host that compute at the same time.
struct LocalPlace {
  int local_rank = 0;
  int local_workers = 1;
};

/// Binds the calling thread, and what it starts from now on, to its part of the cores it may use.
void bind_to_share(const LocalPlace& place);

}  // namespace cohort::os
