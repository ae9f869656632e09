#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

/// What a measured program does to and knows of its own process. Header only: the peers are
/// programs that link nothing of Cohort.

namespace cohort::bench {

/// The cores this process may use, lowest first.
inline std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

/// Binds this process to one core, the ranks spread over `cores` in turn. Where there are more
/// ranks than cores, some share one. A machine that refuses it changes nothing.
inline void pin_to_core_of(int rank, const std::vector<int>& cores = allowed_cores()) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[static_cast<std::size_t>(rank) % cores.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// What a measured program must do first: if `cohort bench` is killed, all it has started end.
inline void die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/// Seconds on the clock that all processes of this machine share.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The most memory this program has had. (Not getrusage's figure: that one remembers the memory
/// of the process which started this program.)
inline std::int64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmHWM:", 0) != 0) continue;
    std::int64_t kib = 0;
    std::istringstream(line.substr(6)) >> kib;
    return kib * 1024;
  }
  return 0;
}

}  // namespace cohort::bench
