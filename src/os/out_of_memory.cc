#include "os/out_of_memory.h"

#include <cohort/error.h>

#include <sstream>
#include <string>

#include "base/files.h"

namespace cohort::os {
namespace {

std::string own_cgroup() {
  std::istringstream groups(read_kernel_file("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "/sys/fs/cgroup";
}

}  // namespace

std::int64_t out_of_memory_kills() {
  try {
    std::istringstream events(read_kernel_file(own_cgroup() + "/memory.events"));
    std::string name;
    for (std::int64_t count = 0; events >> name >> count;) {
      if (name == "oom_kill") return count;
    }
  } catch (const Error&) {
    // No such file: not in such a group, so nothing can be said.
  }
  return 0;
}

}  // namespace cohort::os
