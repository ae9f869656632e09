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

constexpr const char* kBase = "/tmp";
constexpr const char* kOwn = "cohort-live-";  // New ones; of no other folder that we make.
constexpr const char* kShared = "shared-";    // In the user's folder.

/// A folder that is ours alone: no link, of our user, closed to all others.
bool is_private(const struct stat& status) {
  return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

bool is_private(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && is_private(status);
}

UniqueFd open_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Whether what was opened still stands under its name: somebody may have removed it meanwhile.
bool is_there(const UniqueFd& folder, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(folder.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// Folders whose holders were killed. One that is just being made is held by nobody yet and may go,
/// too; its maker sees that. The lock is held until the folder is gone, so that nobody takes it in
/// between.
void remove_leftovers(const std::string& base, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base, ignored)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(prefix) || !is_private(path)) continue;
    const UniqueFd folder = open_folder(path);
    if (!folder || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (is_there(folder, path)) std::filesystem::remove_all(path, ignored);
    ::flock(folder.get(), LOCK_UN);  // Also where another thread has just forked.
  }
}

/// The held folder, or none where it was taken for a leftover before it was held. Waits for who is
/// just removing it.
UniqueFd hold(const std::string& path) {
  UniqueFd folder = open_folder(path);
  if (!folder && errno != ENOENT) fail_errno("Cannot open the folder " + path);
  while (folder && ::flock(folder.get(), LOCK_SH) != 0) {
    if (errno != EINTR) fail_errno("Cannot lock the folder " + path);
  }
  return folder && is_there(folder, path) ? std::move(folder) : UniqueFd();
}

}  // namespace

PrivateFolder::PrivateFolder() : maker_(::getpid()) {
  remove_leftovers(kBase, kOwn);
  while (!lock_) {
    path_ = std::string(kBase) + "/" + kOwn + "XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) {
      fail_errno(std::string("Cannot make a folder for sockets in ") + kBase);
    }
    lock_ = hold(path_);
  }
}

PrivateFolder::PrivateFolder(const std::string& name) : maker_(::getpid()) {
  const std::string user = user_folder();
  path_ = user + "/" + kShared + name;
  while (!lock_) {
    make_private_folder(path_);
    lock_ = hold(path_);
  }
  remove_leftovers(user, kShared);  // This one is held.
}

// The lock becomes one against all others, which it can where nobody else holds the folder. A child
// that was forked meanwhile has the same lock: it is let go of there, too.
PrivateFolder::~PrivateFolder() {
  if (::getpid() != maker_) return;
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 && is_there(lock_, path_)) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ::flock(lock_.get(), LOCK_UN);
}

void make_private_folder(const std::string& path) {
  struct stat status {};
  while (::mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) fail_errno("Cannot make " + path);
    if (::lstat(path.c_str(), &status) != 0) continue;  // Somebody removes it, as a leftover.
    if (is_private(status)) return;
    fail(ErrorCode::io,
         "{} should be a folder of yours that nobody else can enter (mode 0700), and is not; "
         "remove it, or have it removed.",
         path);
  }
}

std::string user_folder() {
  return user_folder_in(kBase, "/run/user/" + std::to_string(::geteuid()));
}

std::string user_folder_in(const std::string& base, const std::string& session) {
  std::string path = base + "/cohort-user-" + std::to_string(::geteuid());
  struct stat status {};
  const bool taken = ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
  if (taken && is_private(session)) path = session + "/cohort-user";
  make_private_folder(path);
  return path;
}

}  // namespace cohort::os
