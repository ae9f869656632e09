#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/server_report.h"
#include "server/wire/request.h"

namespace cohort::server {

/// What the ledger says of one worker of its group.
struct LedgerEntry {
  std::uint64_t settled = 0;  ///< Its newest push that counts here.
  std::uint64_t known = 0;    ///< Its newest push that counts on any of the servers.

  bool operator==(const LedgerEntry&) const = default;
};

/// Which pushes of every worker have come to one shard, and what became of them: none is applied
/// twice, none is lost unseen. One thread at a time.
///
/// A push is named by the group of workers it was first made in, the worker's number there and a
/// sequence number. It has *come* when it waits here, and is *settled* when what became of it is in
/// the update, or in the sum of kept pushes, that is committed next. What is settled stands in the
/// shard's memory with the model itself. So after a server's death a worker makes its unanswered
/// push again in the next group, under its old name, and every server knows whether it has it.
///
///   accept ──► has come ──► settle_applied / settle_dropped ──► commit ──► answer
///              (lost with    (the entry of its worker is now its number)
///               its server)
///
/// All workers do so before any of them takes new work or pushes anything new (see
/// ServerWorker::make_space): once that is seen here, begin(), all pushes of the group before are
/// settled, and the memory has the ledger of one group only.
class PushLedger {
 public:
  explicit PushLedger(int workers)
      : last_(static_cast<std::size_t>(workers)), settled_(static_cast<std::size_t>(workers)) {}

  /// Takes up what the server of the group before has left.
  void restore(std::int64_t generation, std::span<const LedgerEntry> entries,
               const cluster::PushCounts& counts);

  /// Throws Error where a push that is made again cannot be anybody's.
  static void check_again(const RequestHeader& push);

  bool has_come(const RequestHeader& push) const;
  /// The sequence number of the newest push of this group; 0 before the first.
  std::uint64_t last(int worker) const { return last_[static_cast<std::size_t>(worker)]; }

  /// Something new of this group: work or a push.
  void begin(std::int64_t generation);
  /// A push that has not come before. Numbers it leaves out are counted as missing.
  void accept(const RequestHeader& push);

  /// Before the commit that has it.
  void settle_applied(const RequestHeader& push);
  void settle_dropped(const RequestHeader& push) { settle(push); }

  void record_duplicate() { ++counts_.duplicates; }
  void record_applied(std::uint64_t staleness);
  void record_dropped(std::uint64_t staleness);
  void record_not_finite() { ++counts_.not_finite; }

  const cluster::PushCounts& counts() const { return counts_; }
  /// What the memory shall have.
  std::int64_t generation() const { return generation_; }
  std::span<const LedgerEntry> entries() const { return begun_ ? settled_ : before_; }

 private:
  void accept_again(const RequestHeader& push);
  void settle(const RequestHeader& push);

  std::vector<std::uint64_t> last_;   // By worker: the newest that has come.
  std::vector<LedgerEntry> settled_;  // By worker of this group,
  std::vector<LedgerEntry> before_;   // and of the one before.
  std::int64_t generation_ = 0;       // The group that entries() is of.
  bool begun_ = false;                // entries() is of this group, no longer of the one before.
  cluster::PushCounts counts_;
};

}  // namespace cohort::server
