#include "train/run/server_memories.h"

#include "server/shard/reconcile_shards.h"
#include "strategy/servers/server_rule.h"

namespace cohort::training {

ServerMemories::ServerMemories(const Job& job, Model& model) {
  if (job.cluster.servers == 0) return;
  rules_ =
      strategy::server_options(job, 0, {.workers = static_cast<int>(job.cluster.workers)}).rules;
  const std::vector<std::size_t> bytes = strategy::server_memory_bytes(job, model);
  for (std::size_t server = 0; server < bytes.size(); ++server) {
    memories_.emplace_back(bytes[server]);
    const std::size_t before = (server + bytes.size() - 1) % bytes.size();
    if (job.strategy.replicas > 1) replicas_.emplace_back(bytes[before]);
  }
}

std::vector<std::span<std::byte>> ServerMemories::spans_of(
    const std::vector<server::LastingMemory>& memories) {
  std::vector<std::span<std::byte>> spans;
  for (const server::LastingMemory& memory : memories) spans.push_back(memory.bytes());
  return spans;
}

std::vector<cluster::ServerReport> ServerMemories::reports() {
  // What a worker left on some servers only is else found when the next group is formed.
  if (rules_.consistency != server::ShardRules::Consistency::sync) reconcile();
  std::vector<cluster::ServerReport> all;
  for (const std::span<std::byte> memory : spans()) {
    const auto shard = server::ShardMemory::find(memory);
    if (!shard) return {};
    all.push_back({.version = shard->record().version, .counts = shard->record().counts});
  }
  return all;
}

std::vector<int> ServerMemories::reconcile() {
  if (memories_.empty()) return {};
  return server::reconcile_shards(spans(), rules_, replicas()).from_copies;
}

}  // namespace cohort::training
