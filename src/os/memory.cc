#include "os/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/memory_room.h"

namespace cohort::os {

namespace {

// The size stays what it is, and so do the seals.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail_no_room(std::size_t bytes) {
  const std::size_t mebibytes = (bytes + (1 << 20) - 1) >> 20;
  fail(ErrorCode::no_space,
       "There is no room for {} MiB of memory shared between the workers; use fewer workers, a "
       "smaller model, or a machine with more memory.",
       mebibytes);
}

/// Takes every page of the first `bytes` now, of which `missing` bytes are not there yet.
/// fallocate() alone would let the kernel kill somebody for the last pages.
void reserve(const UniqueFd& fd, std::size_t bytes, std::size_t missing) {
  if (missing > memory_room()) fail_no_room(bytes);
  const auto length = static_cast<off_t>(bytes);
  int result = 0;
  do {
    result = ::fallocate(fd.get(), 0, 0, length);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno == ENOSPC || errno == ENOMEM || errno == EFBIG) fail_no_room(bytes);
  fail_errno("Cannot reserve shared memory");
}

}  // namespace

PrivateMemory::PrivateMemory(std::size_t bytes) {
  if (bytes == 0) return;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    fail(ErrorCode::no_space, "there is no room for {} MiB of memory", bytes >> 20);
  }
  // Only advice: without huge pages everything works, more slowly.
  ::madvise(data, bytes, MADV_HUGEPAGE);
  bytes_ = {static_cast<std::byte*>(data), bytes};
}

PrivateMemory::PrivateMemory(PrivateMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

PrivateMemory& PrivateMemory::operator=(PrivateMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

PrivateMemory::~PrivateMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

SharedMemory::SharedMemory(UniqueFd fd, std::size_t size, Pages pages)
    : fd_(std::move(fd)), size_(size) {
  const int flags = MAP_SHARED | (pages == Pages::reserved ? MAP_POPULATE : MAP_NORESERVE);
  void* data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, fd_.get(), 0);
  if (data == MAP_FAILED) {
    if (errno == ENOMEM) fail_no_room(size_);
    fail_errno("Cannot map shared memory");
  }
  data_ = static_cast<std::byte*>(data);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_);
}

SharedMemory SharedMemory::create(std::size_t bytes, Pages pages, std::size_t capacity) {
  if (bytes == 0) fail(ErrorCode::invalid, "Shared memory of zero bytes was asked for.");
  capacity = std::max(bytes, capacity);
  if (capacity > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) fail_no_room(bytes);
  UniqueFd fd(::memfd_create("cohort", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) fail_errno("Cannot create shared memory");
  if (::ftruncate(fd.get(), static_cast<off_t>(capacity)) != 0) {
    fail_errno("Cannot set the size of shared memory");
  }
  if (pages == Pages::reserved) reserve(fd, bytes, bytes);
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) fail_errno("Cannot seal shared memory");
  return SharedMemory(std::move(fd), bytes, pages);
}

SharedMemory SharedMemory::adopt(UniqueFd descriptor, std::size_t bytes, Pages pages) {
  // Only memory without a name can be asked for its seals, no file can.
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(descriptor.get(), &status) != 0 ||
      bytes == 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    fail(ErrorCode::corrupt, "What was handed over is not {} bytes of Cohort's shared memory.",
         bytes);
  }
  return SharedMemory(std::move(descriptor), bytes, pages);
}

std::size_t SharedMemory::bytes_in_use() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail_errno("Cannot tell what shared memory takes");
  constexpr std::size_t kBlock = 512;  // Of st_blocks, whatever the file system's is.
  return static_cast<std::size_t>(status.st_blocks) * kBlock;
}

void SharedMemory::resize(std::size_t bytes) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail_errno("Cannot tell the size of shared memory");
  const auto capacity = static_cast<std::size_t>(status.st_size);
  if (bytes > capacity) fail_no_room(bytes);
  // Another process may have made it larger since it was mapped here, so all behind goes.
  const auto length = static_cast<off_t>(bytes);
  if (bytes < capacity && ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, length,
                                      status.st_size - length) != 0) {
    fail_errno("Cannot give back shared memory");
  }
  const std::size_t had = bytes_in_use();
  reserve(fd_, bytes, bytes > had ? bytes - had : 0);
  if (bytes == size_) return;
  void* data = ::mremap(data_, size_, bytes, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) fail_no_room(bytes);
  data_ = static_cast<std::byte*>(data);
  size_ = bytes;
}

}  // namespace cohort::os
