#include "checkpoint/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <optional>
#include <sstream>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/integers.h"

namespace cohort::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The name beside `path` under which it is not what it shall become, or not any more.
fs::path leftover_name(const fs::path& path, std::string_view of) {
  return path.parent_path() / fmt::format("{}{}{}", kLeftoverPrefix, of, path.filename().string());
}

/// Of all joint folders; then come generation, token and number.
const std::string kJointPrefix = fmt::format("{}all-", kLeftoverPrefix);

/// Nothing for a name that is not a joint folder's.
std::optional<JointAttempt> attempt_named(const std::string& name) {
  if (!name.starts_with(kJointPrefix)) return std::nullopt;
  std::array<std::int64_t, 3> numbers{};
  std::istringstream words(name.substr(kJointPrefix.size()));
  for (std::int64_t& number : numbers) {
    std::string word;
    const auto parsed = std::getline(words, word, '-')
                            ? parse_integer(word, 0, std::numeric_limits<std::int64_t>::max())
                            : std::nullopt;
    if (!parsed) return std::nullopt;
    number = *parsed;
  }
  return JointAttempt{.generation = numbers[0],
                      .token = static_cast<std::uint32_t>(numbers[1]),
                      .number = static_cast<std::uint32_t>(numbers[2])};
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

NewFolder::NewFolder(fs::path final, const JointAttempt& attempt)
    : final_(std::move(final)),
      temporary_(!attempt.is_joint() ? leftover_name(final_, "")
                                     : make_joint_folder(final_.parent_path(), attempt)) {
  if (!attempt.is_joint() && ::mkdir(temporary_.c_str(), 0700) != 0) {
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

fs::path make_joint_folder(const fs::path& parent, const JointAttempt& attempt) {
  const fs::path folder = parent / fmt::format("{}{}-{}-{}", kJointPrefix, attempt.generation,
                                               attempt.token, attempt.number);
  if (::mkdir(folder.c_str(), 0700) == 0) return folder;
  if (errno != EEXIST) fail_errno("cannot create folder " + folder.string());
  // Others of the group may have made it; nobody makes it a link.
  if (fs::is_symlink(fs::symlink_status(folder))) {
    fail(ErrorCode::invalid, "{} is a link, where only a folder itself is taken", folder.string());
  }
  check_own_folder(folder);
  return folder;
}

bool is_joint_since(const std::string& name, const JointAttempt& attempt) {
  const auto named = attempt_named(name);
  if (!named) return false;
  if (named->generation > attempt.generation) return true;
  return named->generation == attempt.generation && named->token == attempt.token &&
         named->number >= attempt.number;
}

void remove_folder(const fs::path& folder) {
  const fs::path leftover = leftover_name(folder, "old-");
  rename_folder(folder, leftover);
  failpoint("checkpoint.remove");
  std::error_code failed;
  fs::remove_all(leftover, failed);
  if (failed) fail_errno("cannot remove " + leftover.string(), failed.value());
}

}  // namespace cohort::checkpoint
