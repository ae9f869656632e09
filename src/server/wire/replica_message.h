#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "server/memory/shard_memory.h"

namespace cohort {

/// A shard on its way to the server that keeps a copy of it, as bytes. The copy is lasting memory
/// like the shard's own, so that it can take its place.
class ReplicaMessage {
 public:
  enum class Kind : std::uint64_t {
    whole,   ///< All of it.
    update,  ///< What the last update changed.
    push,    ///< Of a push that is not in an update yet.
  };

  /// The memory must outlive the message and stay unchanged meanwhile.
  ReplicaMessage(const ShardMemory& memory, Kind kind);

  /// One after the other they are the message.
  std::vector<std::span<const std::byte>> parts() const& { return parts_; }
  std::vector<std::span<const std::byte>> parts() && = delete;

 private:
  void add_floats(const FloatsArea& area);
  void add_changed_rows(const TableArea& table);
  void add_kept(const KeptArea& kept);
  /// What was packed so far becomes a part.
  void end_packed();

  std::vector<std::vector<std::byte>> packed_;
  std::vector<std::span<const std::byte>> parts_;
};

/// Brings the copy in `lasting` up to date. A kill on the way leaves it as it was, or in case of
/// `whole` nothing. Throws Error(corrupt) where the message cannot be read, Error(invalid) where
/// the copy is not what the shard was before.
void take_replica(std::span<const std::byte> message, std::span<std::byte> lasting);

/// Copies everything that servers keep in `from`, which has a model, to `to`, which is zeroed.
void copy_lasting(std::span<std::byte> from, std::span<std::byte> to);

}  // namespace cohort
