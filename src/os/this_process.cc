#include "os/this_process.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>

#include "base/files.h"

namespace cohort::os {
namespace {

std::string_view variable_name(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

}  // namespace

std::vector<std::string> command_line() {
  std::vector<std::string> words;
  std::string word;
  for (const char c : read_kernel_file("/proc/self/cmdline")) {
    if (c != '\0') {
      word += c;
    } else {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

std::vector<std::string> environment_with(const std::vector<std::string>& changed) {
  std::vector<std::string> environment;
  for (char** one = ::environ; *one != nullptr; ++one) {
    const std::string_view name = variable_name(*one);
    const bool is_set_anew = std::ranges::any_of(
        changed, [&](const std::string& entry) { return variable_name(entry) == name; });
    if (!is_set_anew) environment.emplace_back(*one);
  }
  for (const std::string& entry : changed) {
    if (entry.find('=') != std::string::npos) environment.push_back(entry);
  }
  return environment;
}

void flush_output() {
  std::fflush(stdout);
  std::fflush(stderr);
}

// Those that this process may run on, which in a container, or under taskset, are fewer than the
// machine has.
int usable_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  const bool done = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
  return static_cast<std::size_t>(done ? raised.rlim_cur : limit.rlim_cur);
}

}  // namespace cohort::os
