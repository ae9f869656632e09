#include "chaos/watch/held_memory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cohort {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMemfd = "/memfd:";
constexpr std::string_view kAnonymous = "/dev/zero (deleted)";

bool is_memory(const std::string& name) {
  return name.starts_with(kMemfd) || name == kAnonymous;
}

void add_open(pid_t pid, HeldMemory& memory) {
  std::error_code failed;
  fs::directory_iterator each(fmt::format("/proc/{}/fd", pid), failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    std::error_code gone;
    const std::string name = fs::read_symlink(each->path(), gone).string();
    struct stat status = {};
    if (gone || !is_memory(name) || ::stat(each->path().c_str(), &status) != 0) continue;
    memory.emplace(
        fmt::format("{:02x}:{:02x} {}", major(status.st_dev), minor(status.st_dev), status.st_ino),
        name);
  }
}

void add_mapped(pid_t pid, HeldMemory& memory) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string addresses, rights, offset, device, inode, name;
    words >> addresses >> rights >> offset >> device >> inode >> std::ws;
    std::getline(words, name);
    if (is_memory(name)) memory.emplace(device + " " + inode, name);
  }
}

}  // namespace

HeldMemory memory_of(pid_t pid) {
  HeldMemory memory;
  add_open(pid, memory);
  add_mapped(pid, memory);
  return memory;
}

std::vector<std::string> holders_of(const HeldMemory& memory) {
  std::vector<std::string> lines;
  std::error_code failed;
  fs::directory_iterator each("/proc", failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    const std::string name = each->path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    std::string held;
    for (const auto& [key, what] : memory_of(pid)) {
      if (memory.contains(key)) held += (held.empty() ? "" : ", ") + what;
    }
    if (!held.empty()) {
      lines.push_back(fmt::format("process {} still holds memory of the run: {}", pid, held));
    }
  }
  return lines;
}

}  // namespace cohort
