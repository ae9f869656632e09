// Copies of a shard, as another server sends them: into memory that has nothing, or that has the
// shard as it was. What is then in that memory is used as a server uses it that takes over.

#include <algorithm>
#include <functional>

#include "server/memory/lasting_memory.h"
#include "server/memory/replica_message.h"
#include "server/shard/gradient_sum.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

using server::ReplicaMessage;
using server::ShardMemory;

constexpr std::size_t kSlots = 1;
constexpr std::size_t kReplicaHead =
    8;  // Of an input: whether there is a shard, and so that numbers fit.

server::ShardShape sample_shape() {
  return {.dense = 6, .tables = {{.first_row = 2, .end_row = 6, .width = 2}}};
}

server::LastingMemory new_memory() {
  return server::LastingMemory(ShardMemory::bytes_needed(sample_shape(), kSlots));
}

/// One that has had an update, with a push that waits for the next.
ShardMemory sample_shard(const server::LastingMemory& lasting) {
  ShardMemory memory(sample_shape(), kSlots, lasting.bytes());
  const cluster::WorkLeft work{.next = 4, .parts = 2};
  memory.publish({.version = 1}, &work);
  memory.begin_update();
  server::save_floats(memory.dense(), 0, 6);
  const std::vector<std::uint32_t> rows = {3, 5};
  server::save_rows(memory.tables()[0], rows);
  const server::KeptRows& kept = memory.kept(0).tables[0];
  *kept.count = rows.size();
  std::ranges::copy(rows, kept.rows.begin());
  const std::vector<server::LedgerEntry> ledger(2);
  memory.commit({.version = 2, .kept_pushes = 1}, &work, ledger);
  return memory;
}

std::string replica_seed(bool there_is_one, const ReplicaMessage& message) {
  std::string text(kReplicaHead, '\0');
  text[0] = there_is_one ? 1 : 0;
  for (const Bytes part : message.parts()) text.append(text_of(part));
  return text;
}

/// As GradientSum does: rows must be there, and ascend.
void use_shard(const ShardMemory& memory) {
  (void)memory.work();
  if (memory.record().kept_pushes == 0) return;
  const server::KeptArea& kept = memory.kept(memory.record().kept_area);
  for (std::size_t table = 0; table < kept.tables.size(); ++table) {
    const server::TableShape& shape = memory.shape().tables[table];
    const auto rows = kept.tables[table].rows.first(*kept.tables[table].count);
    require(std::ranges::adjacent_find(rows, std::ranges::greater_equal()) == rows.end(),
            "kept rows ascend");
    for (const std::uint32_t row : rows) {
      require(row >= shape.first_row && row < shape.end_row, "kept rows are the shard's");
    }
  }
}

}  // namespace

void replica(Bytes input) {
  if (input.size() < kReplicaHead) return;
  const server::LastingMemory lasting = new_memory();
  if (input[0] != std::byte{0}) {
    // As it was before the update that the seeds bring.
    sample_shard(lasting).step_back();
  }
  server::take_replica(input.subspan(kReplicaHead), lasting.bytes());
  if (const auto memory = ShardMemory::find(lasting.bytes())) use_shard(*memory);
}

Seeds replica_seeds() {
  const server::LastingMemory lasting = new_memory();
  const ShardMemory memory = sample_shard(lasting);
  return {replica_seed(false, {memory, ReplicaMessage::Kind::whole}),
          replica_seed(true, {memory, ReplicaMessage::Kind::whole}),
          replica_seed(true, {memory, ReplicaMessage::Kind::update})};
}

}  // namespace cohort::fuzz
