#pragma once

#include <cohort/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/work_board.h"
#include "os/memory.h"
#include "server/memory/push_ledger.h"
#include "server/memory/work_area.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {

// The areas of a shard's memory. All are views: ShardMemory has the memory, and they are valid for
// as long as it, or the lasting memory it uses, is.

/// Floats with their optimizer slots.
struct FloatsArea {
  std::span<float> values = {};
  std::vector<std::span<float>> slots = {};
};

/// Dense floats, and what they were before the update that is under way or the last one, as far as
/// `saved` says.
struct DenseArea {
  FloatsArea now = {};
  FloatsArea before = {};  ///< Empty in memory that does not last.
  /// How many of the first floats are in `before`, of values and slots alike. Null where there are
  /// none.
  std::atomic<std::uint64_t>* saved = nullptr;
};

/// What rows of a table were before the update that is under way, or the last one.
struct JournalArea {
  std::atomic<std::uint64_t>* count = nullptr;
  std::span<std::uint32_t> rows = {};
  std::span<float> floats = {};  ///< Of each row: its values, then each of its slots.
};

/// A shard's rows of one table.
struct TableArea {
  TableShape shape;
  FloatsArea floats = {};
  JournalArea journal = {};  ///< Empty in memory that does not last.
};

/// Saves what will be changed; afterwards it may be. Since begin_update() floats are saved from the
/// first on, and rows of a table once. Does nothing in memory that does not last.
void save_floats(const DenseArea& dense, std::size_t begin, std::size_t count);
void save_rows(const TableArea& table, std::span<const std::uint32_t> rows);

/// A sum of pushes that were answered and are in no update yet (GradientSum), whose rows are all
/// those that one of them has.
struct KeptRows {
  std::uint64_t* count = nullptr;  ///< Of `rows` and `values`, whose sizes are the room there is.
  std::span<std::uint32_t> rows = {};
  std::span<float> values = {};
};
/// Such a sum of the dense floats and of each table.
struct KeptArea {
  std::span<float> dense = {};
  std::vector<KeptRows> tables = {};  ///< Empty in memory that does not last.
};

/// What a shard is at one moment, but for its floats.
struct ShardRecord {
  std::uint64_t version = 0;
  std::uint64_t kept_pushes = 0;       ///< Pushes that were answered and are in no update yet.
  std::uint64_t kept_area = 0;         ///< Which of the two has their sum.
  double lr = 0;                       ///< Of the newest push.
  std::int64_t ledger_generation = 0;  ///< The group of workers that the ledger is of.
  std::uint64_t ledger_workers = 0;
  cluster::PushCounts counts = {};
};

/// The memory of one shard. Where it lasts, a process that is killed at any instruction leaves it
/// so that the next one finds the shard as it was after the last commit.
///
/// An update changes floats where they are, each block after what it was is saved beside. The
/// record exists twice; commit() fills the other one and then, with one store, makes it the current
/// one. What was saved stays until the next update begins, so the last update can also be undone.
/// (Writing new floats beside the old ones would save a copy, but be slower: they would no longer
/// be in the cache for the next update.)
///
///   begin_update()            journal = 0, nothing saved, journal = version + 1
///   save_floats(), change     block by block; save_rows(), change
///   commit()                  the other record, its work and ledger; current = the other
///
///   killed                    what the next process finds
///   before begin_update()     the last commit; whatever was noted since counts (note_work)
///   before commit()'s store   the same: recover() puts back what was saved
///   after it                  this commit; until the next begin_update() step_back() undoes it
///
/// All stores of a killed process that come before the one it was killed at are in memory, so only
/// their order matters, which the atomic words keep.
///
/// Areas stand one after the other, each from a page on; where they are follows from shape and
/// number of slots alone. Those in brackets are only in memory that lasts:
///
///   header with two records | [shape] | dense floats | [what they were] | two kept sums |
///   of each table: floats, [journal], [two kept sums] | [two ledgers] | [two lists of work]
///
/// One process at a time uses lasting memory, and one thread of it. Others that have it mapped could
/// write there all the same: numbers by which memory is read or written are read once, and those that
/// cannot be throw Error(corrupt) or are taken for the largest that can.
class ShardMemory {
 public:
  /// Uses `lasting`, which may have the model of a shard of this shape already, or memory that ends
  /// with this object where `lasting` is empty. Throws Error(no_space) where it is too small,
  /// Error(corrupt) where it has another model.
  ShardMemory(const ShardShape& shape, std::size_t slots, std::span<std::byte> lasting);

  /// The model that is in `lasting`, if there is one.
  static std::optional<ShardMemory> find(std::span<std::byte> lasting);

  /// What of its memory may be other than zero; the rest was never touched.
  std::vector<std::span<const std::byte>> in_use() const;

  /// Of lasting memory.
  static std::size_t bytes_needed(const ShardShape& shape, std::size_t slots);

  bool lasts() const { return lasts_; }
  bool has_model() const;
  const ShardShape& shape() const { return shape_; }
  std::size_t slots() const { return slots_; }

  const DenseArea& dense() const { return dense_; }
  /// Area 0 or 1; ShardRecord::kept_area says which one counts.
  const KeptArea& kept(std::size_t area) const { return kept_[area]; }
  std::span<const TableArea> tables() const { return tables_; }

  // What was committed last, with the work that was noted since.
  const ShardRecord& record() const;
  cluster::WorkLeft work() const;
  std::span<const LedgerEntry> ledger() const;

  /// The ledger has room for so many.
  static constexpr std::size_t kMostWorkers = 1 << 16;

  /// From now on until the next commit, what was saved may be changed.
  void begin_update();
  /// This is now what the shard is. `work` may be null. The record's `ledger_workers` is set here.
  void commit(const ShardRecord& record, const cluster::WorkLeft* work,
              std::span<const LedgerEntry> ledger = {});
  /// The floats of the first model are here; from now on there is a model.
  void publish(const ShardRecord& record, const cluster::WorkLeft* work,
               std::span<const LedgerEntry> ledger = {});
  /// Since the last commit this piece of its work was handed out. Costs the same however many were.
  void note_work(const cluster::Claim& claim);

  /// Undoes an update that was begun and not committed.
  void recover();
  /// Undoes the last commit of an update. Throws Error(corrupt) where it cannot.
  void step_back();
  /// There is no model any more.
  void clear();

  /// All of the lasting memory; empty where it does not last.
  std::span<std::byte> lasting() const { return lasting_; }

 private:
  struct Header;

  ShardMemory(bool lasts, const ShardShape& shape, std::size_t slots);

  void lay_out(std::byte* base);
  void save(std::size_t index, const ShardRecord& record, std::span<const LedgerEntry> ledger);
  void restore() const;
  std::size_t current() const;

  ShardShape shape_;
  std::size_t slots_;
  bool lasts_;
  std::span<std::byte> lasting_;
  os::PrivateMemory private_;  // Where `lasting_` is empty.
  Header* header_ = nullptr;
  bool is_ours_[2] = {};  // Which records this object has written.
  std::span<std::byte> shape_bytes_;
  WorkArea work_[2];
  std::span<LedgerEntry> ledger_[2];
  DenseArea dense_;
  KeptArea kept_[2];
  std::vector<TableArea> tables_;
  std::byte* base_ = nullptr;
  std::size_t fixed_bytes_ = 0;  // Before those of the work.
  std::size_t bytes_ = 0;
};

/// The lasting memory that a server needs whose optimizer this is. Most of it is never used, and
/// then takes no room.
std::size_t shard_memory_bytes(const ModelSize& model, int servers, int server,
                               const OptimizerOptions& optimizer);

}  // namespace cohort::server
