#include "server/shard/reconcile_shards.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "server/memory/replica_message.h"

namespace cohort::server {
namespace {

/// See reconcile_shards(): nobody can have seen an update that another server lacks.
void check_lead(std::uint64_t version, std::uint64_t smallest) {
  if (version <= smallest + 1) return;
  fail(ErrorCode::corrupt,
       "a server in lockstep has made {} updates and another one {}; they can differ by one",
       version, smallest);
}

/// A shard without a model whose copy has one has lost its memory.
std::vector<int> replace_lost(std::span<const std::span<std::byte>> memories,
                              std::span<const std::span<std::byte>> replicas) {
  std::vector<int> replaced;
  for (std::size_t server = 0; server < memories.size() && !replicas.empty(); ++server) {
    const int keeper = keeper_of(static_cast<int>(server), static_cast<int>(replicas.size()));
    const auto copy = replicas[static_cast<std::size_t>(keeper)];
    if (!ShardMemory::find(memories[server]) && ShardMemory::find(copy)) {
      copy_lasting(copy, memories[server]);
      replaced.push_back(static_cast<int>(server));
    }
  }
  return replaced;
}

/// The ledger of the newest group that any of the servers has seen. One that has seen nothing of it
/// has settled nothing of it.
std::vector<LedgerEntry> ledger_of(const ShardMemory& shard, std::int64_t generation,
                                   std::size_t workers) {
  std::vector<LedgerEntry> entries;
  if (shard.record().ledger_generation == generation) {
    entries.assign(shard.ledger().begin(), shard.ledger().end());
  }
  entries.resize(workers);
  return entries;
}

/// Pushes that one server has and another lacks become known to all: `known` is then the same on
/// every server, and on those that lack a push it is counted as missing, until it is made again.
void compare_ledgers(std::vector<ShardMemory>& shards) {
  std::int64_t generation = 0;
  std::size_t workers = 0;
  for (const ShardMemory& shard : shards)
    generation = std::max(generation, shard.record().ledger_generation);
  for (const ShardMemory& shard : shards) {
    if (shard.record().ledger_generation == generation)
      workers = std::max(workers, shard.ledger().size());
  }
  std::vector<std::uint64_t> known(workers);
  for (const ShardMemory& shard : shards) {
    const auto entries = ledger_of(shard, generation, workers);
    for (std::size_t i = 0; i < workers; ++i) {
      known[i] = std::max({known[i], entries[i].settled, entries[i].known});
    }
  }
  for (ShardMemory& shard : shards) {
    std::vector<LedgerEntry> entries = ledger_of(shard, generation, workers);
    ShardRecord record = shard.record();
    cluster::WorkLeft work = shard.work();
    // Of an older group the work says who had it there: other workers than those of the ledger.
    const bool same_group = record.ledger_generation == generation;
    record.ledger_generation = generation;
    for (std::size_t i = 0; i < workers; ++i) {
      record.counts.missing += known[i] - std::max(entries[i].known, entries[i].settled);
      entries[i].known = known[i];
      if (!same_group || entries[i].settled == known[i]) continue;
      // Server 0 gives new work with its answer to a push or later; it has not got this one, so
      // what the worker has taken is what the push was of.
      std::erase_if(work.again, [&](const cluster::Claim& piece) {
        return piece.taken_by == static_cast<int>(i);
      });
    }
    shard.commit(record, &work, entries);
  }
}

}  // namespace

ReconciledShards reconcile_shards(std::span<const std::span<std::byte>> memories,
                                  const ShardRules& rules,
                                  std::span<const std::span<std::byte>> replicas) {
  const std::vector<int> from_copies = replace_lost(memories, replicas);
  std::vector<ShardMemory> shards;
  for (const std::span<std::byte> memory : memories) {
    if (auto shard = ShardMemory::find(memory)) shards.push_back(std::move(*shard));
  }
  if (shards.size() < memories.size() || shards.empty()) {
    for (ShardMemory& shard : shards) shard.clear();
    return {};
  }
  for (ShardMemory& shard : shards) shard.recover();
  const auto version_of = [](const ShardMemory& shard) { return shard.record().version; };
  const std::uint64_t smallest = version_of(*std::ranges::min_element(shards, {}, version_of));
  if (rules.consistency == ShardRules::Consistency::sync) {
    for (const ShardMemory& shard : shards) check_lead(version_of(shard), smallest);
    for (ShardMemory& shard : shards) {
      if (version_of(shard) > smallest) shard.step_back();
    }
  } else {
    compare_ledgers(shards);
  }
  return {.have_model = true, .version = smallest, .from_copies = from_copies};
}

}  // namespace cohort::server
