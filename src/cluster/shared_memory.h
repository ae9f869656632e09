#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace cohort {

/// Memory that several processes of one host map. It has no name in any file system: it lives as
/// long as a process holds it, so a crash leaves nothing behind.
///
/// One process creates it, tells the others `path()` (through a Store), they attach. After fork()
/// the child has it too.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// Zeroed memory of `bytes`. Throws Error(no_space) where the machine has no room for it (every
  /// page is reserved now, so that no later write can fail).
  static SharedMemory create(std::size_t bytes);

  /// Maps what another process created. `path` is its path().
  static SharedMemory attach(const std::string& path);

  /// Under this path other processes of the same user and host can attach, while this one lives.
  std::string path() const;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  SharedMemory(UniqueFd fd, std::size_t size);

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cohort
