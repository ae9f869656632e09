#include "checkpoint/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

fs::path leftover_name(const fs::path& path, std::string_view of) {
  return path.parent_path() / fmt::format("{}{}{}", kLeftoverPrefix, of, path.filename().string());
}

void rename_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail_errno(fmt::format("cannot rename {} to {}", from.string(), to.string()));
  }
}

void exchange_folders(const fs::path& one, const fs::path& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) {
    fail_errno(fmt::format("cannot exchange {} and {}", one.string(), other.string()));
  }
  // A file system that cannot exchange names, such as NFS: for a moment one of them is missing.
  const fs::path aside = leftover_name(other, "old-");
  rename_folder(other, aside);
  rename_folder(one, other);
  rename_folder(aside, one);
}

}  // namespace

NewFolder::NewFolder(fs::path final)
    : final_(std::move(final)), temporary_(leftover_name(final_, "")) {
  if (::mkdir(temporary_.c_str(), 0755) != 0) {
    fail_errno("cannot create folder " + temporary_.string());
  }
}

NewFolder::~NewFolder() {
  try {
    if (placed_ && !kept_) {
      replaces_ ? exchange_folders(temporary_, final_) : rename_folder(final_, temporary_);
    }
    fs::remove_all(temporary_);
  } catch (const std::exception&) {
    // The next writer removes it: its name says that it is nothing to keep.
  }
}

void NewFolder::place() {
  std::error_code unknown;
  replaces_ = fs::exists(final_, unknown);
  replaces_ ? exchange_folders(temporary_, final_) : rename_folder(temporary_, final_);
  placed_ = true;
}

void remove_folder(const fs::path& folder) {
  const fs::path leftover = leftover_name(folder, "old-");
  rename_folder(folder, leftover);
  failpoint("checkpoint.remove");
  std::error_code failed;
  fs::remove_all(leftover, failed);
  if (failed) fail_errno("cannot remove " + leftover.string(), failed.value());
}

}  // namespace cohort
