#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "server/memory/shard_memory.h"

namespace cohort::server {

/// A copy of every shard on the next server, so that a run survives the end of a host with all its
/// memory (ServerOptions::replicas = 2).
///
///   server s ── whole, update, push, … ──► server keeper_of(s)
///               after each commit of       take_replica(): the copy is at the same version
///               an update or push,
///               before any answer
///
/// Pieces of work that were handed out since are not in it.
///
/// The copy stands in lasting memory that its keeper was given (ServerOptions::replica_memory). It
/// is read only when a shard's own memory is found empty between two groups: reconcile_shards() then
/// copies it back.

/// Which server keeps a copy of this one's shard.
constexpr int keeper_of(int server, int servers) {
  return (server + 1) % servers;
}

/// A shard on its way to the server that keeps a copy of it, as bytes. The copy is lasting memory
/// like the shard's own, so that it can take its place.
class ReplicaMessage {
 public:
  enum class Kind : std::uint64_t {
    whole,   ///< All of it: to a keeper that may have nothing, or something else.
    update,  ///< The last update: all dense floats, and the rows that it has changed.
    push,    ///< Of a push that is not in an update yet: only the sum of such, and the ledger.
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

  std::vector<std::vector<std::byte>> packed_;  // What does not stand in the memory as it is sent.
  std::vector<std::span<const std::byte>> parts_;  // Of `packed_` and of the memory.
};

/// Brings the copy in `lasting` up to date. A kill on the way leaves it as it was, or in case of
/// `whole` nothing. Throws Error(corrupt) where the message cannot be read, Error(invalid) where
/// the copy is not what the shard was before.
void take_replica(std::span<const std::byte> message, std::span<std::byte> lasting);

/// Copies everything that servers keep in `from`, which has a model, to `to`, which is zeroed.
void copy_lasting(std::span<std::byte> from, std::span<std::byte> to);

}  // namespace cohort::server
