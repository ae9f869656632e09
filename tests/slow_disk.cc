// For LD_PRELOAD: a disk that takes its time. fsync() and fdatasync() of what is below the folder
// SLOW_DISK_FOLDER first write SLOW_DISK_GATE.waiting and return no sooner than there is no file
// SLOW_DISK_GATE (where that is set), and SLOW_DISK_MS milliseconds later (where that is set). With
// the gate a test decides how long a checkpoint takes, so that no time matters.

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_slow(int fd) {
  const std::string_view folder = setting("SLOW_DISK_FOLDER");
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  char path[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  if (folder.empty() || length < 0) return false;
  const std::string_view file(path, static_cast<std::size_t>(length));
  return file.starts_with(folder) && (file.size() == folder.size() || file[folder.size()] == '/');
}

void wait_at_gate(const std::string& gate) {
  constexpr useconds_t kLook = 2000;
  if (gate.empty() || ::access(gate.c_str(), F_OK) != 0) return;
  const std::string waiting = gate + ".waiting";
  const int fd = ::open(waiting.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) ::close(fd);
  while (::access(gate.c_str(), F_OK) == 0) ::usleep(kLook);
}

int slowly(const char* name, int fd) {
  if (is_slow(fd)) {
    wait_at_gate(std::string(setting("SLOW_DISK_GATE")));
    ::usleep(static_cast<useconds_t>(1000 * std::atoi(setting("SLOW_DISK_MS").data())));
  }
  using Sync = int (*)(int);
  return reinterpret_cast<Sync>(::dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) {
  return slowly("fsync", fd);
}

extern "C" int fdatasync(int fd) {
  return slowly("fdatasync", fd);
}
