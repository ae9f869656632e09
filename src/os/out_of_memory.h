#pragma once

#include <cstdint>

namespace cohort::os {

/// How often the kernel has killed a process of this process's control group for want of memory.
/// Where a child was killed by SIGKILL and this has grown since, that is why. 0 where the system
/// does not say.
std::int64_t out_of_memory_kills();

}  // namespace cohort::os
