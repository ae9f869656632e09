#pragma once

#include <cstddef>
#include <span>

namespace cohort::server {

/// Zeroed memory that a process shares with those it forks, and that outlives each of them: what a
/// server keeps here is there for the server that takes its place. It has no name and ends with the
/// last process that has it: the launcher makes it before it forks the first server, and keeps it.
/// Only pages that are used take room, so it may be made larger than what will be needed.
class LastingMemory {
 public:
  LastingMemory() = default;
  /// Throws Error(no_space).
  explicit LastingMemory(std::size_t bytes);
  LastingMemory(LastingMemory&& other) noexcept;
  /// `other` gets what this had, to end with it.
  LastingMemory& operator=(LastingMemory&& other) noexcept;
  ~LastingMemory();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// Makes it zero again, for all who share it: for trials of what happens when it is lost.
void lose_memory(std::span<std::byte> lasting);

}  // namespace cohort::server
