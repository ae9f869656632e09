#include "os/private_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/fail.h"

namespace cohort::os {
namespace {

constexpr const char* kPrefix = "cohort-";
constexpr const char* kLock = "lock";

/// A folder that is ours alone: no link, of our user, closed to all others.
bool is_private(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

/// Where this user's folders stand.
std::string base_folder() {
  const std::string session = "/run/user/" + std::to_string(::geteuid());
  return is_private(session) ? session : "/tmp";
}

/// True when the lock is held now by this descriptor, and nobody had it.
bool take_lock(const UniqueFd& lock) {
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

UniqueFd open_lock(const std::string& folder, int flags) {
  return UniqueFd(
      ::open((folder + "/" + kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
}

/// Folders whose makers were killed. One that is just being made has no lock yet, and stays.
void remove_leftovers(const std::string& base) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base, ignored)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(kPrefix) || !is_private(path)) continue;
    if (take_lock(open_lock(path, 0))) std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace

PrivateFolder::PrivateFolder() : maker_(::getpid()) {
  const std::string base = base_folder();
  remove_leftovers(base);
  path_ = base + "/" + kPrefix + "XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) fail_errno("Cannot make a folder for sockets in " + base);
  lock_ = open_lock(path_, O_CREAT | O_EXCL);
  if (!take_lock(lock_)) fail_errno("Cannot lock the folder " + path_);
}

PrivateFolder::~PrivateFolder() {
  if (::getpid() != maker_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_errno("Cannot make " + path);
  if (!is_private(path)) {
    fail(ErrorCode::io,
         "{} should be a folder of yours that nobody else can enter (mode 0700), and is not; "
         "remove it, or have it removed.",
         path);
  }
}

std::string user_folder() {
  const std::string path = base_folder() + "/cohort-user-" + std::to_string(::geteuid());
  make_private_folder(path);
  return path;
}

}  // namespace cohort::os
