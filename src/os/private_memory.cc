#include "os/private_memory.h"

#include <sys/mman.h>

#include <utility>

#include "base/fail.h"

namespace cohort {

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

}  // namespace cohort
