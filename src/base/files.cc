#include "base/files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/fail.h"
#include "base/memory_room.h"

namespace cohort {

namespace {

/// Smaller files are read without asking whether there is room for them.
constexpr std::uint64_t kWorthAsking = 16 << 20;

/// Without waiting for anybody: a FIFO that nobody writes to must not hold us up.
UniqueFd open_file(const std::filesystem::path& path, int flags) {
  return UniqueFd(::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, 0644));
}

[[noreturn]] void fail_to_open(const std::filesystem::path& path, int error_number) {
  if (error_number == ENOENT) fail(ErrorCode::not_found, "there is no file {}", path.string());
  if (error_number == ELOOP) {
    fail(ErrorCode::invalid, "{} is a link, where only a file itself is taken", path.string());
  }
  fail_errno("cannot open " + path.string(), error_number);
}

/// Its size. Throws where it is no regular file.
std::uint64_t size_of(const UniqueFd& fd, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_errno("cannot read " + path.string());
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::invalid, "{} is not a regular file", path.string());
  return static_cast<std::uint64_t>(status.st_size);
}

/// One read(2) that is not interrupted; 0 at the end of the file.
std::size_t read_some(int fd, std::span<std::byte> into, const std::filesystem::path& path) {
  for (;;) {
    const ssize_t got = ::read(fd, into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail_errno("cannot read " + path.string());
  }
}

/// A name in the folder of `path` that nobody can have made before.
std::filesystem::path unguessable_beside(const std::filesystem::path& path) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) fail_errno("no random numbers");
  return path.parent_path() / fmt::format("{}{:016x}", kLeftoverPrefix, random);
}

/// See check_own_folder(). Not opened to be read, which its owner may have forbidden.
UniqueFd open_own_folder(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) {
    fail(ErrorCode::not_found, "there is no folder {}", folder.string());
  }
  if (!fd && errno == ENOTDIR) fail(ErrorCode::invalid, "{} is not a folder", folder.string());
  struct stat name {};
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || ::lstat(folder.c_str(), &name) != 0) {
    fail_errno("cannot open the folder " + folder.string());
  }
  const bool linked_by_another = name.st_uid != ::geteuid() && name.st_uid != 0;
  if (status.st_uid != ::geteuid() || linked_by_another) {
    fail(ErrorCode::invalid, "the folder {} belongs to another user; name one of your own",
         folder.string());
  }
  return fd;
}

}  // namespace

InputFile::InputFile(std::filesystem::path path, Links links)
    : path_(std::move(path)),
      fd_(open_file(path_, O_RDONLY | (links == Links::refuse ? O_NOFOLLOW : 0))) {
  if (!fd_) fail_to_open(path_, errno);
  size_ = size_of(fd_, path_);
}

std::size_t InputFile::read(std::span<std::byte> into) {
  std::size_t filled = 0;
  while (filled < into.size()) {
    const std::size_t got = read_some(fd_.get(), into.subspan(filled), path_);
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

std::string read_file(const std::filesystem::path& path, Links links, std::uint64_t most) {
  InputFile file(path, links);
  if (file.size() > most) {
    fail(ErrorCode::invalid, "{} has {} bytes; at most {} are read", path.string(), file.size(),
         most);
  }
  if (file.size() > kWorthAsking) check_memory_room(path.string(), file.size());
  std::string content(file.size(), '\0');
  content.resize(file.read(std::as_writable_bytes(std::span(content))));
  return content;
}

std::string read_kernel_file(const std::filesystem::path& path) {
  const UniqueFd fd = open_file(path, O_RDONLY);
  if (!fd) fail_to_open(path, errno);
  std::string content;
  std::byte chunk[1 << 14];
  while (const std::size_t got = read_some(fd.get(), chunk, path)) {
    content.append(reinterpret_cast<const char*>(chunk), got);
  }
  return content;
}

UniqueFd open_to_write(const std::filesystem::path& path, Existing existing) {
  UniqueFd fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (!fd) fail_to_open(path, errno);
  size_of(fd, path);
  // Not by O_TRUNC, which would have emptied it before it was looked at.
  if (existing == Existing::empty && ::ftruncate(fd.get(), 0) != 0) {
    fail_errno("cannot write " + path.string());
  }
  return fd;
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

// Opened once, so that what was looked at is what gets the mode (by a descriptor that only names it).
void create_private_folder(const std::filesystem::path& folder) {
  constexpr mode_t kOwnerAlone = 0700;
  if (folder.has_parent_path()) create_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), kOwnerAlone) == 0) return;
  if (errno != EEXIST) fail_errno("cannot create folder " + folder.string());
  const UniqueFd fd = open_own_folder(folder);
  if (::chmod(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), kOwnerAlone) != 0) {
    fail_errno("cannot make the folder " + folder.string() + " its owner's alone");
  }
}

void check_own_folder(const std::filesystem::path& folder) {
  open_own_folder(folder);
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)),
      temporary_(unguessable_beside(path_)),
      fd_(open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)) {
  if (!fd_) fail_errno("cannot write " + path_.string());
}

AtomicFile::~AtomicFile() {
  if (fd_) ::unlink(temporary_.c_str());
}

// First the bytes, then the name, then the folder that has the name: whenever the machine stops,
// the old content or the new one is there, and after this returned the new one.
void AtomicFile::commit(Sync sync) {
  if (sync == Sync::yes && ::fsync(fd_.get()) != 0) fail_errno("cannot sync " + path_.string());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_errno("cannot write " + path_.string());
  }
  fd_ = UniqueFd();
  if (sync == Sync::yes) sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes, Sync sync) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit(sync);
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
