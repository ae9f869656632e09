#include "server/memory/lasting_memory.h"

#include <sys/mman.h>

#include <utility>

#include "base/fail.h"

namespace cohort::server {

LastingMemory::LastingMemory(std::size_t bytes) {
  if (bytes == 0) return;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    fail(ErrorCode::no_space, "there is no room for {} MiB of memory that servers share",
         bytes >> 20);
  }
  // Only advice: without huge pages everything works, more slowly.
  ::madvise(data, bytes, MADV_HUGEPAGE);
  bytes_ = {static_cast<std::byte*>(data), bytes};
}

LastingMemory::LastingMemory(LastingMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

LastingMemory& LastingMemory::operator=(LastingMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

LastingMemory::~LastingMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void lose_memory(std::span<std::byte> lasting) {
  if (lasting.empty() || ::madvise(lasting.data(), lasting.size(), MADV_REMOVE) == 0) return;
  fail_errno("a server's memory cannot be thrown away");
}

}  // namespace cohort::server
