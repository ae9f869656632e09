#include "checkpoint/checked_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"

namespace cohort {
namespace {

/// Small enough to stay in a core's own cache between its checksum and its writing.
constexpr std::size_t kWriteBytes = 256 << 10;

}  // namespace

CheckedFile::CheckedFile(const std::filesystem::path& folder, const std::string& name)
    : path_(folder / name),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (!fd_) fail_errno("cannot create " + path_.string());
  written_.name = name;
}

void CheckedFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kWriteBytes);
    bytes.remove_prefix(piece.size());
    written_.crc32c = crc32c(std::as_bytes(std::span(piece)), written_.crc32c);
    written_.size += piece.size();
    write_all(fd_.get(), piece, path_);
    failpoint("checkpoint.write");
  }
}

bool CheckedFile::is_gone() const {
  struct stat now {};
  return ::fstat(fd_.get(), &now) != 0 || now.st_nlink == 0;
}

void CheckedFile::sync() {
  failpoint("checkpoint.sync");
  if (::fsync(fd_.get()) != 0) fail_errno("cannot sync " + path_.string());
}

}  // namespace cohort
