#include "base/memory_room.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/fail.h"

namespace cohort {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// The number that starts a file such as memory.max; unlimited where there is none.
std::uint64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t limit = 0;
  return file >> limit ? limit : kUnlimited;
}

/// The limit of this process's control group, if it has one.
std::uint64_t cgroup_limit() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (line.starts_with("0::")) return limit_in("/sys/fs/cgroup" + line.substr(3) + "/memory.max");
  }
  return kUnlimited;
}

/// What the kernel could still give; unlimited where /proc does not say.
std::uint64_t machine_limit() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kibibytes = 0, sum = 0;
  bool known = false;
  while (file >> name >> kibibytes && std::getline(file, unit)) {
    if (name == "MemAvailable:" || name == "SwapFree:") {
      sum += kibibytes * 1024;
      known = true;
    }
  }
  return known ? sum : kUnlimited;
}

/// What `ulimit -v` leaves.
std::uint64_t address_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  const std::uint64_t used = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur);
}

}  // namespace

// The least of three: what the machine has left, what the control group may have at all, and what
// is left of the address space. A guess, and an early one: nobody keeps others from taking it
// first. It is for refusing what cannot fit with a sentence, instead of being killed for it later.
std::uint64_t memory_room() {
  return std::min({machine_limit(), cgroup_limit(), address_limit()});
}

void check_memory_room(const std::string& what, std::uint64_t bytes) {
  const std::uint64_t room = memory_room();
  if (bytes <= room) return;
  fail(ErrorCode::no_space, "{} would take {} MiB of memory; there is room for {} MiB", what,
       bytes >> 20, room >> 20);
}

}  // namespace cohort
