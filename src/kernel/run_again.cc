#include "kernel/run_again.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "os/command_line.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

/// This program's file by its name, so that the process keeps its name too; where it was replaced
/// meanwhile, the link to what is running.
std::string program_file() {
  const fs::path link = "/proc/self/exe";
  std::error_code problem;
  const fs::path file = fs::read_symlink(link, problem);
  return !problem && fs::exists(file, problem) ? file : link;
}

std::vector<std::string> environment_with(const std::vector<Setting>& settings) {
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view entry = *one;
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool is_set_anew =
        name == kMark ||
        std::ranges::any_of(settings, [&](const Setting& set) { return set.name == name; });
    if (!is_set_anew) environment.emplace_back(entry);
  }
  for (const Setting& one : settings) environment.push_back(one.name + "=" + one.value);
  environment.push_back(fmt::format("{}={}", kMark, to_mark(settings)));
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void run_again(const std::vector<Setting>& settings) {
  try {
    std::vector<std::string> words = command_line();
    std::vector<std::string> environment = environment_with(settings);
    ::execve(program_file().c_str(), pointers_to(words).data(), pointers_to(environment).data());
  } catch (const Error&) {
    // No /proc: the program goes on as it is.
  }
}

}  // namespace cohort
