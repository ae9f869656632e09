#include "os/descriptor_limit.h"

#include <sys/resource.h>

namespace cohort {

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  const bool done = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
  return static_cast<std::size_t>(done ? raised.rlim_cur : limit.rlim_cur);
}

}  // namespace cohort
