#include "chaos/watch/leftovers.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/fail.h"

namespace cohort::chaos {
namespace {

namespace fs = std::filesystem;

// ---- sockets and named memory

/// The inodes of a process's sockets.
std::set<std::string> sockets_of(pid_t pid) {
  constexpr std::string_view kPrefix = "socket:[";
  std::set<std::string> inodes;
  std::error_code failed;
  fs::directory_iterator each(fmt::format("/proc/{}/fd", pid), failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(each->path(), gone).string();
    if (gone || !target.starts_with(kPrefix)) continue;
    inodes.insert(target.substr(kPrefix.size(), target.size() - kPrefix.size() - 1));
  }
  return inodes;
}

/// The files in /dev/shm that a process has mapped.
std::set<std::string> segments_of(pid_t pid) {
  std::set<std::string> paths;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    const auto begin = line.find("/dev/shm/");
    if (begin != std::string::npos) paths.insert(line.substr(begin));
  }
  return paths;
}

/// A socket of this machine, and the sentence that says it is still there.
struct SocketLine {
  std::string inode;
  std::string what;
};

/// The listening ports of one of the kernel's tables.
std::vector<SocketLine> listening_ports(const char* table) {
  constexpr const char* kListening = "0A";
  std::vector<SocketLine> found;
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line);  // The heading.
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state != kListening) continue;
    const auto port = std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16);
    found.push_back({inode, fmt::format("port {} is still listened on", port)});
  }
  return found;
}

/// Those that have a name.
std::vector<SocketLine> unix_sockets() {
  std::vector<SocketLine> found;
  std::ifstream lines("/proc/net/unix");
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, count, protocol, flags, type, state, inode, path;
    words >> number >> count >> protocol >> flags >> type >> state >> inode >> path;
    if (!path.empty()) found.push_back({inode, fmt::format("unix socket {} is still there", path)});
  }
  return found;
}

// ---- memory without a name

using HeldMemory = std::map<std::string, std::string>;

constexpr std::string_view kMemfd = "/memfd:";
constexpr std::string_view kAnonymous = "/dev/zero (deleted)";

bool is_memory(const std::string& name) {
  return name.starts_with(kMemfd) || name == kAnonymous;
}

/// What a process has open of it: a descriptor is enough to map it again.
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

/// What it has mapped, with or without a descriptor that is still open.
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

/// What a process has open or mapped of it. A process that has ended, or is not ours to look at,
/// holds nothing.
HeldMemory memory_of(pid_t pid) {
  HeldMemory memory;
  add_open(pid, memory);
  add_mapped(pid, memory);
  return memory;
}

/// A line for every process of this machine that still holds some of `memory`.
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

}  // namespace

void Belongings::note(const std::set<pid_t>& processes) {
  for (const pid_t pid : processes) {
    processes_.insert(pid);
    sockets_.merge(sockets_of(pid));
    segments_.merge(segments_of(pid));
    memory_.merge(memory_of(pid));
  }
}

std::vector<std::string> Belongings::left() const {
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<SocketLine>& found) {
    for (const SocketLine& socket : found) {
      if (sockets_.contains(socket.inode)) lines.push_back(socket.what);
    }
  };
  add(listening_ports("/proc/net/tcp"));
  add(listening_ports("/proc/net/tcp6"));
  add(unix_sockets());
  // One that was made and left between two notes is known by its name only.
  for (const SocketLine& socket : unix_sockets()) {
    const bool named_after_one = std::ranges::any_of(processes_, [&](pid_t pid) {
      return socket.what.find(fmt::format("@cohort-{}-", pid)) != std::string::npos;
    });
    if (named_after_one && !sockets_.contains(socket.inode)) lines.push_back(socket.what);
  }
  for (const std::string& path : segments_) {
    if (fs::exists(path)) lines.push_back(fmt::format("shared memory {} is still there", path));
  }
  std::ranges::move(holders_of(memory_), std::back_inserter(lines));
  return lines;
}

std::vector<pid_t> child_processes(pid_t parent) {
  std::vector<pid_t> all;
  std::error_code failed;
  fs::directory_iterator each(fmt::format("/proc/{}/task", parent), failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    std::ifstream children(each->path() / "children");
    for (pid_t pid = 0; children >> pid;) all.push_back(pid);
  }
  return all;
}

void adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    fail_errno("cannot ask the kernel for orphaned processes");
  }
}

}  // namespace cohort::chaos
