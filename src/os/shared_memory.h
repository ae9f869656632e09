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

  /// When its pages are taken from the machine: all at once, so that no later write can fail; or
  /// each when it is first touched, for memory of which little may ever be used.
  enum class Pages { reserved, on_use };

  /// Zeroed memory of `bytes`. Throws Error(no_space) where the machine has no room for what is
  /// reserved.
  static SharedMemory create(std::size_t bytes, Pages pages = Pages::reserved);

  /// Maps what another process created in the same way. `path` is its path().
  static SharedMemory attach(const std::string& path, Pages pages = Pages::reserved);

  /// Its size is `bytes` afterwards, all of them reserved: what is behind them is given back to the
  /// machine, what is new is zeroed, the rest stays. data() may change. Whoever attaches from now
  /// on sees the new size; mappings that others have must not be used behind it.
  void resize(std::size_t bytes);

  /// Under this path other processes of the same user and host can attach, while this one lives.
  std::string path() const;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Of which the machine has taken pages so far, whoever touched them.
  std::size_t bytes_in_use() const;

 private:
  SharedMemory(UniqueFd fd, std::size_t size, Pages pages);

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cohort
