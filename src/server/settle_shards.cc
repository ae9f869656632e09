#include "server/settle_shards.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "server/replica_message.h"

namespace cohort {
namespace {

void check_lead(std::uint64_t version, std::uint64_t smallest) {
  if (version <= smallest + 1) return;
  fail(ErrorCode::corrupt,
       "a server in lockstep has made {} updates and another one {}; they can differ by one",
       version, smallest);
}

void replace_lost(std::span<const std::span<std::byte>> memories,
                  std::span<const std::span<std::byte>> replicas) {
  for (std::size_t server = 0; server < memories.size() && !replicas.empty(); ++server) {
    const auto copy = replicas[(server + 1) % replicas.size()];
    if (!ShardMemory::find(memories[server]) && ShardMemory::find(copy)) {
      copy_lasting(copy, memories[server]);
    }
  }
}

}  // namespace

SettledShards settle_shards(std::span<const std::span<std::byte>> memories, const ShardRules& rules,
                            std::span<const std::span<std::byte>> replicas) {
  replace_lost(memories, replicas);
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
  }
  return {.have_model = true, .version = smallest};
}

}  // namespace cohort
