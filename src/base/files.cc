#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fail.h"

namespace cohort {

std::string read_file(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) fail(ErrorCode::not_found, "there is no file {}", path.string());
  if (!fd) fail_errno("cannot open " + path.string());
  std::string content;
  std::error_code unknown_size;
  const auto size = std::filesystem::file_size(path, unknown_size);
  if (!unknown_size) content.reserve(size);
  char chunk[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("cannot read " + path.string());
    if (got == 0) return content;
    content.append(chunk, static_cast<std::size_t>(got));
  }
}

void write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno("cannot write " + path.string());
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail_errno("cannot sync folder " + folder.string());
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) fail_errno("cannot create folder " + folder.string(), failed.value());
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)),
      temporary_(path_.string() + ".part"),
      fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!fd_) fail_errno("cannot create " + temporary_.string());
}

AtomicFile::~AtomicFile() {
  if (fd_) ::unlink(temporary_.c_str());
}

void AtomicFile::commit() {
  if (::fsync(fd_.get()) != 0) fail_errno("cannot sync " + temporary_.string());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_errno("cannot write " + path_.string());
  }
  fd_ = UniqueFd();
  sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "cohort-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail_errno("cannot create a temporary folder " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cohort
