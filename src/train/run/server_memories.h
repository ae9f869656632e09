#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <span>
#include <vector>

#include "cluster/server_report.h"
#include "launch/control/control_block.h"
#include "server/memory/lasting_memory.h"
#include "server/shard/shard.h"

namespace cohort::training {

/// The memory of a run's servers. It is the launcher's, mapped before the first fork and so by
/// every process, so that a server that dies loses nothing: the one that takes its place finds
/// everything there, as it was after the last update that was acknowledged
/// (server/memory/shard_memory.h). Servers write it while they run; the launcher looks at it only
/// while none does.
class ServerMemories {
 public:
  ServerMemories() = default;
  /// Before the first fork. Makes none where the job has no servers.
  ServerMemories(const Job& job, Model& model);

  std::vector<std::span<std::byte>> spans() const { return spans_of(memories_); }
  /// By server, where it keeps the copy of the server before; empty where there are no copies.
  std::vector<std::span<std::byte>> replicas() const { return spans_of(replicas_); }

  /// While no server runs: makes them fit to go on together. Returns the servers whose memory was
  /// lost, and which go on from their copies.
  std::vector<int> reconcile();

  /// What the servers have counted, also those that died; once none of them runs any more. Empty
  /// where there is no such memory, or no model in it.
  std::vector<cluster::ServerReport> reports();

 private:
  static std::vector<std::span<std::byte>> spans_of(
      const std::vector<server::LastingMemory>& memories);

  std::vector<server::LastingMemory> memories_;
  std::vector<server::LastingMemory> replicas_;
  server::ShardRules rules_;
};

}  // namespace cohort::training
