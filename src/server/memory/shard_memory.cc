#include "server/memory/shard_memory.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "optimizer/optimizer.h"
#include "server/memory/copy_floats.h"
#include "server/wire/model_message.h"

namespace cohort::server {
namespace {

constexpr std::size_t kShapeBytes = 1 << 20;
constexpr std::size_t kPage = 4096;
// For pieces of work that were handed out and are not done. Lasting memory takes pages when they
// are touched, so only what is used of it counts.
constexpr std::size_t kWorkBytes = 128 << 20;

[[noreturn]] void fail_memory() {
  fail(ErrorCode::corrupt, "a server's lasting memory cannot be read");
}

/// A store that no other store of this thread moves across, in either direction.
template <class T>
void store_in_order(std::atomic<T>& word, T value) {
  word.exchange(value, std::memory_order_acq_rel);
}

/// Cuts memory into pieces. Without any it only counts.
class Cutter {
 public:
  explicit Cutter(std::byte* base) : base_(base) {}

  template <class T>
  std::span<T> take(std::size_t count) {
    const std::size_t begin = (used_ + kPage - 1) / kPage * kPage;
    used_ = begin + count * sizeof(T);
    if (!base_) return {};
    return {reinterpret_cast<T*>(base_ + begin), count};
  }

  FloatsArea take_floats(std::size_t count, std::size_t slots) {
    FloatsArea area{.values = take<float>(count)};
    for (std::size_t slot = 0; slot < slots; ++slot) area.slots.push_back(take<float>(count));
    return area;
  }

  std::atomic<std::uint64_t>* take_word() { return take<std::atomic<std::uint64_t>>(1).data(); }

  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// visit(what is, what was) for every piece of a row of the table that an entry of the journal is
/// about.
template <class Visit>
void visit_row(const TableArea& table, std::size_t entry, std::uint32_t number, Visit&& visit) {
  const std::size_t width = table.shape.width;
  const std::size_t row = number - table.shape.first_row;
  float* saved = table.journal.floats.data() + entry * width * (1 + table.floats.slots.size());
  visit(table.floats.values.data() + row * width, saved);
  for (const std::span<float> slot : table.floats.slots) {
    visit(slot.data() + row * width, saved += width);
  }
}

}  // namespace

// How an update survives a kill at any instruction. Everything that is needed for that stands in
// the lasting memory, twice where it changes:
//
//   records[2], ledger, work    the one that `current` names counts; the other is filled for
//                               the next commit, which is one store to `current`
//   floats, and their journal   before a block changes, what it was is copied to the journal and
//                               counted there (`saved`); `journal` names the version that this
//                               update will make
//
//   begin_update ── save block ── change block ── … ── commit
//
// Found by a successor: a journal of version + 1 is of an update that was not committed, and all
// that it has counted is put back (recover). A journal of the version itself is of the last update,
// which is whole, and can be undone once, where another server has not made it (step_back).
void save_floats(const DenseArea& dense, std::size_t begin, std::size_t count) {
  if (!dense.saved) return;
  copy_past_cache(dense.now.values.subspan(begin, count), dense.before.values.subspan(begin));
  for (std::size_t slot = 0; slot < dense.now.slots.size(); ++slot) {
    copy_past_cache(dense.now.slots[slot].subspan(begin, count),
                    dense.before.slots[slot].subspan(begin));
  }
  store_in_order(*dense.saved, std::uint64_t{begin + count});
}

void save_rows(const TableArea& table, std::span<const std::uint32_t> rows) {
  if (!table.journal.count) return;
  for (std::size_t entry = 0; entry < rows.size(); ++entry) {
    table.journal.rows[entry] = rows[entry];
    visit_row(table, entry, rows[entry], [&](const float* now, float* before) {
      std::copy_n(now, table.shape.width, before);
    });
  }
  store_in_order(*table.journal.count, std::uint64_t{rows.size()});
}

/// Zeroed memory is a header without a model.
struct ShardMemory::Header {
  static constexpr std::uint64_t kMark = 0xC040574172D00000 + sizeof(ShardRecord);

  std::atomic<std::uint64_t> mark;  ///< kMark where there is a model.
  std::uint64_t slots;
  std::uint64_t shape_bytes;
  std::atomic<std::uint64_t> current;  ///< Which of `records` counts.
  std::atomic<std::uint64_t> journal;  ///< The version made by the update it is of; 0: of none.
  ShardRecord records[2];
};

/// Without memory: only its size is known.
ShardMemory::ShardMemory(bool lasts, const ShardShape& shape, std::size_t slots)
    : shape_(shape), slots_(slots), lasts_(lasts) {
  lay_out(nullptr);
}

ShardMemory::ShardMemory(const ShardShape& shape, std::size_t slots, std::span<std::byte> lasting)
    : ShardMemory(!lasting.empty(), shape, slots) {
  if (lasts_ && lasting.size() < bytes_) {
    fail(ErrorCode::no_space, "a server's lasting memory has {} bytes; its model needs {}",
         lasting.size(), bytes_);
  }
  lasting_ = lasting;
  if (!lasts_) private_ = os::PrivateMemory(bytes_);
  lay_out(lasts_ ? lasting.data() : private_.bytes().data());
  std::vector<std::byte> mine;
  write_shape(mine, shape_);
  if (mine.size() > kShapeBytes) {
    fail(ErrorCode::no_space, "a server's model has {} tables and {} matrices, too many to keep",
         shape.tables.size(), shape.matrices.size());
  }
  if (!has_model()) return;
  if (header_->slots != slots_ || header_->shape_bytes != mine.size() ||
      !std::ranges::equal(mine, shape_bytes_.first(mine.size()))) {
    fail(ErrorCode::corrupt, "a server's lasting memory has another model than the one it serves");
  }
}

std::optional<ShardMemory> ShardMemory::find(std::span<std::byte> lasting) {
  if (lasting.size() < kPage + kShapeBytes) return {};
  const auto* header = reinterpret_cast<const Header*>(lasting.data());
  if (header->mark.load(std::memory_order_acquire) != Header::kMark) return {};
  const auto shape = read_shape(lasting.subspan(kPage, std::min(header->shape_bytes, kShapeBytes)));
  const std::size_t slots = header->slots;
  if (slots > kMostSlots) fail_memory();
  return ShardMemory(shape, slots, lasting);
}

std::size_t ShardMemory::bytes_needed(const ShardShape& shape, std::size_t slots) {
  return ShardMemory(true, shape, slots).bytes_;
}

std::size_t shard_memory_bytes(const ModelSize& model, int servers, int server,
                               const OptimizerOptions& optimizer) {
  return ShardMemory::bytes_needed(shard_shape(model, servers, server),
                                   optimizer::make_optimizer(optimizer)->slots().size());
}

/// Gives every area its place. With null it only counts, which leaves all areas empty.
void ShardMemory::lay_out(std::byte* base) {
  Cutter cutter(base);
  header_ = reinterpret_cast<Header*>(cutter.take<std::byte>(sizeof(Header)).data());
  shape_bytes_ = cutter.take<std::byte>(lasts_ ? kShapeBytes : 0);
  dense_.now = cutter.take_floats(shape_.dense, slots_);
  if (lasts_) {
    dense_.before = cutter.take_floats(shape_.dense, slots_);
    dense_.saved = cutter.take_word();
  }
  for (KeptArea& kept : kept_) kept = {.dense = cutter.take<float>(shape_.dense)};
  tables_.clear();
  for (const TableShape& table : shape_.tables) {
    tables_.push_back({table, cutter.take_floats(table.floats(), slots_)});
    if (!lasts_) continue;
    tables_.back().journal = {.count = cutter.take_word(),
                              .rows = cutter.take<std::uint32_t>(table.rows()),
                              .floats = cutter.take<float>(table.floats() * (1 + slots_))};
    for (KeptArea& kept : kept_) {
      kept.tables.push_back({.count = cutter.take<std::uint64_t>(1).data(),
                             .rows = cutter.take<std::uint32_t>(table.rows()),
                             .values = cutter.take<float>(table.floats())});
    }
  }
  for (auto& ledger : ledger_) ledger = cutter.take<LedgerEntry>(lasts_ ? kMostWorkers : 0);
  base_ = base;
  fixed_bytes_ = cutter.used();
  for (auto& work : work_) work = WorkArea(cutter.take<std::byte>(lasts_ ? kWorkBytes : 0));
  bytes_ = cutter.used();
}

bool ShardMemory::has_model() const {
  return header_->mark.load(std::memory_order_acquire) == Header::kMark;
}

std::size_t ShardMemory::current() const {
  return header_->current.load(std::memory_order_acquire) == 0 ? 0 : 1;
}

const ShardRecord& ShardMemory::record() const {
  return header_->records[current()];
}

cluster::WorkLeft ShardMemory::work() const {
  return lasts_ ? work_[current()].read() : cluster::WorkLeft();
}

std::vector<std::span<const std::byte>> ShardMemory::in_use() const {
  std::vector<std::span<const std::byte>> parts = {{base_, fixed_bytes_}};
  for (const WorkArea& work : work_) {
    if (lasts_) parts.push_back(work.used());
  }
  return parts;
}

void ShardMemory::note_work(const cluster::Claim& claim) {
  if (lasts_) work_[current()].note(claim);
}

std::span<const LedgerEntry> ShardMemory::ledger() const {
  const std::size_t index = current();
  const std::uint64_t workers = header_->records[index].ledger_workers;
  return ledger_[index].first(std::min<std::uint64_t>(workers, ledger_[index].size()));
}

/// Fills the record that is not the current one; nothing counts before commit() makes it current.
void ShardMemory::save(std::size_t index, const ShardRecord& record,
                       std::span<const LedgerEntry> ledger) {
  ShardRecord& saved = header_->records[index];
  // A process that was killed may have left half of its counts there.
  if (!std::exchange(is_ours_[index], true)) saved.counts = {};
  saved.version = record.version;
  saved.kept_pushes = record.kept_pushes;
  saved.kept_area = record.kept_area;
  saved.lr = record.lr;
  saved.ledger_generation = record.ledger_generation;
  saved.ledger_workers = 0;
  saved.counts.become(record.counts);
  if (!lasts_) return;
  if (ledger.size() > kMostWorkers) {
    fail(ErrorCode::no_space, "a server has {} workers; its ledger has room for {}", ledger.size(),
         kMostWorkers);
  }
  saved.ledger_workers = ledger.size();
  std::ranges::copy(ledger, ledger_[index].begin());
}

void ShardMemory::begin_update() {
  if (!lasts_) return;
  // While the counts of what is saved go back to zero the journal must not be taken for one.
  store_in_order(header_->journal, std::uint64_t{0});
  store_in_order(*dense_.saved, std::uint64_t{0});
  for (const TableArea& table : tables_) store_in_order(*table.journal.count, std::uint64_t{0});
  store_in_order(header_->journal, record().version + 1);
}

void ShardMemory::commit(const ShardRecord& record, const cluster::WorkLeft* work,
                         std::span<const LedgerEntry> ledger) {
  const std::size_t next = 1 - current();
  save(next, record, ledger);
  if (lasts_) work_[next].write(work ? *work : cluster::WorkLeft());
  store_in_order(header_->current, std::uint64_t{next});
}

void ShardMemory::publish(const ShardRecord& record, const cluster::WorkLeft* work,
                          std::span<const LedgerEntry> ledger) {
  // The mark comes last: before it is there nobody finds what is written here.
  header_->slots = slots_;
  if (lasts_) {
    std::vector<std::byte> shape;
    write_shape(shape, shape_);
    header_->shape_bytes = shape.size();
    std::ranges::copy(shape, shape_bytes_.begin());
  }
  store_in_order(header_->journal, std::uint64_t{0});
  commit(record, work, ledger);
  store_in_order(header_->mark, Header::kMark);
}

/// The journal is of the update after the record's: that one was begun and not committed. Doing it
/// twice does no harm, so a kill in here is met by the next recover().
void ShardMemory::recover() {
  if (header_->journal.load(std::memory_order_acquire) == record().version + 1) restore();
}

void ShardMemory::step_back() {
  const std::uint64_t version = record().version;
  const ShardRecord& before = header_->records[1 - current()];
  const bool is_intact = header_->journal.load(std::memory_order_acquire) == version;
  if (version == 0 || before.version + 1 != version || !is_intact) {
    fail(ErrorCode::corrupt,
         "a server has made update {} that another one lacks, and cannot undo it", version);
  }
  restore();
  store_in_order(header_->current, std::uint64_t{1 - current()});
}

/// Puts back everything that was saved, which is all that may have been changed.
void ShardMemory::restore() const {
  const std::uint64_t saved = std::min<std::uint64_t>(dense_.saved->load(std::memory_order_acquire),
                                                      dense_.before.values.size());
  std::ranges::copy(dense_.before.values.first(saved), dense_.now.values.begin());
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    std::ranges::copy(dense_.before.slots[slot].first(saved), dense_.now.slots[slot].begin());
  }
  for (const TableArea& table : tables_) {
    const std::uint64_t count = std::min<std::uint64_t>(
        table.journal.count->load(std::memory_order_acquire), table.journal.rows.size());
    for (std::size_t entry = 0; entry < count; ++entry) {
      const std::uint32_t row = table.journal.rows[entry];
      if (row < table.shape.first_row || row >= table.shape.end_row) fail_memory();
      visit_row(table, entry, row, [&](float* now, const float* before) {
        std::copy_n(before, table.shape.width, now);
      });
    }
  }
}

void ShardMemory::clear() {
  store_in_order(header_->mark, std::uint64_t{0});
}

}  // namespace cohort::server
