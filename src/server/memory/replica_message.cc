#include "server/memory/replica_message.h"

#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "server/memory/copy_floats.h"
#include "server/wire/message_bytes.h"
#include "server/wire/model_message.h"

namespace cohort::server {
namespace {

/// What a message begins with; the model without its floats follows.
struct Head {
  ReplicaMessage::Kind kind = ReplicaMessage::Kind::whole;
  ShardRecord record = {};
};

void take_floats(MessageReader& reader, const FloatsArea& area) {
  std::ranges::copy(reader.take_all<float>(area.values.size()), area.values.begin());
  for (const std::span<float> slot : area.slots) {
    std::ranges::copy(reader.take_all<float>(slot.size()), slot.begin());
  }
}

/// All dense floats change in every update. They are saved and replaced block by block, as the
/// shard itself does it, so that a keeper killed on the way can go back.
void take_dense(MessageReader& reader, const DenseArea& dense) {
  std::vector<std::span<const float>> fresh = {reader.take_all<float>(dense.now.values.size())};
  for (const std::span<float> slot : dense.now.slots) {
    fresh.push_back(reader.take_all<float>(slot.size()));
  }
  for_each_block(dense.now.values.size(), [&](std::size_t begin, std::size_t count) {
    save_floats(dense, begin, count);
    std::ranges::copy(fresh[0].subspan(begin, count), dense.now.values.subspan(begin).begin());
    for (std::size_t slot = 0; slot < dense.now.slots.size(); ++slot) {
      std::ranges::copy(fresh[slot + 1].subspan(begin, count),
                        dense.now.slots[slot].subspan(begin).begin());
    }
  });
}

/// The rows that the update has changed: their numbers, then of each its values and slots.
void take_rows(MessageReader& reader, const TableArea& table) {
  const auto count = reader.take<std::uint64_t>();
  const auto rows = reader.take_all<std::uint32_t>(count);
  const auto is_ours = [&](std::uint32_t row) {
    return row >= table.shape.first_row && row < table.shape.end_row;
  };
  if (!std::ranges::all_of(rows, is_ours) || rows.size() > table.shape.rows()) {
    fail(ErrorCode::corrupt, "A copy of a shard brings rows that the shard does not have.");
  }
  save_rows(table, rows);
  const std::size_t width = table.shape.width;
  const auto place = [&](std::span<float> floats, std::uint32_t row) {
    const auto values = reader.take_all<float>(width);
    std::ranges::copy(values, floats.subspan((row - table.shape.first_row) * width).begin());
  };
  for (const std::uint32_t row : rows) {
    place(table.floats.values, row);
    for (const std::span<float> slot : table.floats.slots) place(slot, row);
  }
}

/// Rows that are summed up later, which trusts them.
bool are_rows_of(std::span<const std::uint32_t> rows, const TableShape& shape) {
  return std::ranges::adjacent_find(rows, std::ranges::greater_equal()) == rows.end() &&
         (rows.empty() || (rows.front() >= shape.first_row && rows.back() < shape.end_row));
}

void take_kept(MessageReader& reader, const ShardMemory& copy, std::size_t area) {
  const KeptArea& kept = copy.kept(area);
  std::ranges::copy(reader.take_all<float>(kept.dense.size()), kept.dense.begin());
  for (std::size_t i = 0; i < kept.tables.size(); ++i) {
    const KeptRows& table = kept.tables[i];
    const auto count = reader.take<std::uint64_t>();
    const auto rows = reader.take_all<std::uint32_t>(count);
    const std::size_t width = table.rows.empty() ? 0 : table.values.size() / table.rows.size();
    const auto values = reader.take_all<float>(count * width);
    if (rows.size() > table.rows.size() || !are_rows_of(rows, copy.tables()[i].shape)) {
      fail(ErrorCode::corrupt, "A copy of a shard brings kept rows that the shard does not have.");
    }
    *table.count = count;
    std::ranges::copy(rows, table.rows.begin());
    std::ranges::copy(values, table.values.begin());
  }
}

/// Sizes are checked before anything of that size is made.
std::vector<LedgerEntry> take_ledger(MessageReader& reader, const Head& head) {
  if (head.record.ledger_workers > ShardMemory::kMostWorkers) {
    fail(ErrorCode::corrupt, "A copy of a shard brings the pushes of too many workers.");
  }
  std::vector<LedgerEntry> ledger(head.record.ledger_workers);
  for (LedgerEntry& entry : ledger) entry = reader.take<LedgerEntry>();
  return ledger;
}

/// Whether a message that is not of the whole goes with the copy.
bool follows(const std::optional<ShardMemory>& copy, const Head& head, const ModelMessage& model) {
  const std::uint64_t updates = head.kind == ReplicaMessage::Kind::update ? 1 : 0;
  return copy && copy->slots() == model.slots && copy->shape().floats() == model.shape.floats() &&
         copy->record().version + updates == head.record.version;
}

/// What was here is no model any more before the first float is written, and publish() makes one of
/// it again at the end.
void take_whole(MessageReader& reader, const ModelMessage& model, const Head& head,
                std::span<const LedgerEntry> ledger, std::span<std::byte> lasting) {
  if (auto old = ShardMemory::find(lasting)) old->clear();
  ShardMemory copy(model.shape, model.slots, lasting);
  take_floats(reader, copy.dense().now);
  for (const TableArea& table : copy.tables()) take_floats(reader, table.floats);
  if (head.record.kept_pushes > 0) take_kept(reader, copy, head.record.kept_area);
  copy.publish(head.record, &model.work, ledger);
}

}  // namespace

ReplicaMessage::ReplicaMessage(const ShardMemory& memory, Kind kind) {
  packed_.emplace_back();
  append(packed_.back(), Head{.kind = kind, .record = memory.record()});
  write_model(packed_.back(), {.version = memory.record().version,
                               .slots = memory.slots(),
                               .work = memory.work(),
                               .shape = memory.shape()});
  append_all(packed_.back(), memory.ledger());
  end_packed();
  if (kind != Kind::push) {
    add_floats(memory.dense().now);
    for (const TableArea& table : memory.tables()) {
      kind == Kind::whole ? add_floats(table.floats) : add_changed_rows(table);
    }
  }
  if (memory.record().kept_pushes > 0) add_kept(memory.kept(memory.record().kept_area));
}

void ReplicaMessage::add_floats(const FloatsArea& area) {
  parts_.push_back(std::as_bytes(area.values));
  for (const std::span<float> slot : area.slots) parts_.push_back(std::as_bytes(slot));
}

void ReplicaMessage::add_changed_rows(const TableArea& table) {
  const auto rows = table.journal.rows.first(table.journal.count->load(std::memory_order_acquire));
  packed_.emplace_back();
  append(packed_.back(), std::uint64_t{rows.size()});
  append_all(packed_.back(), std::span<const std::uint32_t>(rows));
  const std::size_t width = table.shape.width;
  for (const std::uint32_t row : rows) {
    const std::size_t begin = (row - table.shape.first_row) * width;
    append_all(packed_.back(), std::span<const float>(table.floats.values.subspan(begin, width)));
    for (const std::span<float> slot : table.floats.slots) {
      append_all(packed_.back(), std::span<const float>(slot.subspan(begin, width)));
    }
  }
  end_packed();
}

void ReplicaMessage::add_kept(const KeptArea& kept) {
  parts_.push_back(std::as_bytes(kept.dense));
  for (const KeptRows& table : kept.tables) {
    const std::size_t width = table.rows.empty() ? 0 : table.values.size() / table.rows.size();
    packed_.emplace_back();
    const std::uint64_t count = std::min<std::uint64_t>(*table.count, table.rows.size());
    append(packed_.back(), count);
    append_all(packed_.back(), std::span<const std::uint32_t>(table.rows.first(count)));
    append_all(packed_.back(), std::span<const float>(table.values.first(count * width)));
    end_packed();
  }
}

void ReplicaMessage::end_packed() {
  parts_.push_back(packed_.back());
}

// The keeper's end. A message that is not of the whole leads from one version to the next, and is
// refused where the copy is not at the one before it: the server then sends the whole. The copy
// changes by the same steps as the shard itself, journal and commit included, so a keeper that is
// killed in here leaves a copy that is whole, of the version before or the one after.
void take_replica(std::span<const std::byte> message, std::span<std::byte> lasting) {
  MessageReader reader(message);
  const auto head = reader.take<Head>();
  const ModelMessage model = take_model_head(reader);
  if (head.kind > ReplicaMessage::Kind::push || head.record.kept_area > 1) {
    fail(ErrorCode::corrupt, "A copy of a shard cannot be read.");
  }
  const std::vector<LedgerEntry> ledger = take_ledger(reader, head);
  if (head.kind == ReplicaMessage::Kind::whole) {
    return take_whole(reader, model, head, ledger, lasting);
  }
  auto copy = ShardMemory::find(lasting);
  if (!follows(copy, head, model)) {
    fail(ErrorCode::invalid, "this server's copy does not lead to version {}", head.record.version);
  }
  copy->recover();
  if (head.kind == ReplicaMessage::Kind::update) {
    copy->begin_update();
    take_dense(reader, copy->dense());
    for (const TableArea& table : copy->tables()) take_rows(reader, table);
  }
  if (head.record.kept_pushes > 0) take_kept(reader, *copy, head.record.kept_area);
  copy->commit(head.record, &model.work, ledger);
}

/// Pages that are all zero are left out: in `to` they are zero already, and take no room as long as
/// nobody writes there.
void copy_lasting(std::span<std::byte> from, std::span<std::byte> to) {
  constexpr std::size_t kPage = 4096;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  const auto memory = ShardMemory::find(from);
  if (!memory || from.size() > to.size()) {
    fail(ErrorCode::corrupt, "a copy of a shard is not there, or larger than the shard");
  }
  for (std::span<const std::byte> part : memory->in_use()) {
    while (!part.empty()) {
      const auto page = part.first(std::min(kPage, part.size()));
      const auto offset = static_cast<std::size_t>(page.data() - from.data());
      if (!std::ranges::all_of(page, is_zero)) std::ranges::copy(page, to.subspan(offset).begin());
      part = part.subspan(page.size());
    }
  }
}

}  // namespace cohort::server
