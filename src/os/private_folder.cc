#include "os/private_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fail.h"

namespace cohort::os {
namespace {

constexpr const char* kPrefix = "cohort-run-";  // Of no other folder that we make.
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

/// Folders whose makers were killed. One that is just being made has no lock yet, and stays; where
/// its lock is there and not yet held, it may go, and its maker sees that (`make_locked`). The lock
/// is held until the folder is gone, so that no maker takes it in between.
void remove_leftovers(const std::string& base) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base, ignored)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(kPrefix) || !is_private(path)) continue;
    const UniqueFd lock = open_lock(path, 0);
    if (take_lock(lock)) std::filesystem::remove_all(path, ignored);
  }
}

/// The lock of a new folder, or none when another process took the folder for a leftover before
/// its lock was held.
UniqueFd make_locked(const std::string& folder) {
  UniqueFd lock = open_lock(folder, O_CREAT | O_EXCL);
  if (!lock) fail_errno("Cannot write into the folder " + folder);
  struct stat status {};
  const bool is_there = take_lock(lock) && ::fstat(lock.get(), &status) == 0 && status.st_nlink > 0;
  return is_there ? std::move(lock) : UniqueFd();
}

}  // namespace

PrivateFolder::PrivateFolder() : maker_(::getpid()) {
  const std::string base = base_folder();
  remove_leftovers(base);
  while (!lock_) {
    path_ = base + "/" + kPrefix + "XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) {
      fail_errno("Cannot make a folder for sockets in " + base);
    }
    lock_ = make_locked(path_);
  }
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
