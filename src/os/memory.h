#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace cohort::os {

/// Large memory, zeroed, straight from the kernel: PrivateMemory of one process, and SharedMemory
/// that several processes of one host see. Both own their mapping and unmap it in the destructor;
/// both move and do not copy. Neither synchronises anything: see os/shared_wait.h for waiting until
/// another process has written.

/// Memory of one process, on huge pages where the machine offers them: fresh 4 KiB pages are
/// touched at a tenth of the speed. The constructor throws Error(no_space); of 0 bytes it is empty.
class PrivateMemory {
 public:
  PrivateMemory() = default;
  explicit PrivateMemory(std::size_t bytes);
  PrivateMemory(PrivateMemory&& other) noexcept;
  PrivateMemory& operator=(PrivateMemory&& other) noexcept;
  ~PrivateMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  std::span<float> floats() const {
    return {reinterpret_cast<float*>(bytes_.data()), bytes_.size() / sizeof(float)};
  }

 private:
  std::span<std::byte> bytes_;
};

/// Memory that several processes of one host map. It has no name in any file system: the kernel
/// keeps it as long as a process holds a descriptor or a mapping of it, so a crash leaves nothing
/// behind, whoever crashes.
///
///   creator                                  another process of the same user
///   create(bytes): a descriptor, say 7
///   path() = "/proc/<pid>/fd/7"  --Store-->  attach(path): a descriptor of its own, and a mapping
///
/// The creator must live until the others have attached; after that it may go. A child has the
/// memory by fork(), at the same address.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// When its pages are taken from the machine: all at once, so that no later write can fail; or
  /// each when it is first touched, for memory of which little may ever be used. (A write for which
  /// there is no page ends the process by SIGBUS.)
  enum class Pages { reserved, on_use };

  /// Zeroed memory of `bytes`, above 0. Throws Error(no_space) where the machine has no room for
  /// what is reserved.
  static SharedMemory create(std::size_t bytes, Pages pages = Pages::reserved);

  /// Maps what another process created in the same way. `path` is its path(). Throws
  /// Error(peer_lost) where that process has ended, Error(corrupt) where the path leads to anything
  /// but such memory: a peer's word must not make us write to a file.
  static SharedMemory attach(const std::string& path, Pages pages = Pages::reserved);

  /// Its size is `bytes` afterwards, all of them reserved: what is behind them is given back to the
  /// machine, what is new is zeroed, the rest stays. data() may change. Whoever attaches from now
  /// on sees the new size; mappings that others have must not be used behind it.
  void resize(std::size_t bytes);

  /// Under this path other processes of the same user and host can attach, while this one lives.
  std::string path() const;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Bytes for which the machine has taken pages so far, whoever touched them.
  std::size_t bytes_in_use() const;

 private:
  SharedMemory(UniqueFd fd, std::size_t size, Pages pages);

  UniqueFd fd_;                // Of the memory itself; path() is its name under /proc.
  std::byte* data_ = nullptr;  // The mapping of this object, of size_ bytes.
  std::size_t size_ = 0;
};

}  // namespace cohort::os
