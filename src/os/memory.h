#pragma once

#include <cstddef>
#include <span>

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

/// Memory that several processes of one host map. It has no name in any file system, and no wire
/// ever carries one: whoever shall see it gets its descriptor, by fork() or through a unix socket
/// (Store::give). The kernel keeps it as long as a process holds a descriptor or a mapping of it,
/// so a crash leaves nothing behind, whoever crashes.
///
///   creator                               another process of the same user
///   create(bytes)  --Store::give-->       Store::take: adopt(descriptor, bytes), a mapping
///
/// Its capacity is sealed when it is made: no holder of the descriptor can cut it short under the
/// others, whose next touch would end them.
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

  /// Zeroed memory of `bytes`, above 0. It can later be resized to at most `capacity` bytes (where
  /// that is more); what is not used of them costs nothing. Throws Error(no_space) where the machine
  /// has no room for what is reserved.
  static SharedMemory create(std::size_t bytes, Pages pages = Pages::reserved,
                             std::size_t capacity = 0);

  /// Maps `bytes` of what another process created. Throws Error(corrupt) where the descriptor is of
  /// anything but such memory, or of less: a peer's word must not make us write to a file, nor
  /// touch what may vanish.
  static SharedMemory adopt(UniqueFd descriptor, std::size_t bytes, Pages pages = Pages::reserved);

  /// Its size is `bytes` afterwards, all of them reserved: what is behind them is given back to the
  /// machine, what is new is zeroed, the rest stays. data() may change. Mappings that others have
  /// must not be used behind it. Throws Error(no_space) beyond its capacity too.
  void resize(std::size_t bytes);

  /// For handing it to another process.
  int descriptor() const { return fd_.get(); }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Bytes for which the machine has taken pages so far, whoever touched them.
  std::size_t bytes_in_use() const;

 private:
  SharedMemory(UniqueFd fd, std::size_t size, Pages pages);

  UniqueFd fd_;                // Of the memory itself.
  std::byte* data_ = nullptr;  // The mapping of this object, of size_ bytes.
  std::size_t size_ = 0;
};

}  // namespace cohort::os
