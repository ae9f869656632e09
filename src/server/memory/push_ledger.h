#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "server/wire/request.h"

namespace cohort::server {

/// Counts of what became of the pushes. Plain data: it stands in the shard's memory, so that what a
/// server has counted outlives it.
struct PushCounts {
  /// Pushes by their staleness; the last place has all above.
  static constexpr std::size_t kStalenessPlaces = 130;

  std::uint64_t applied = 0;     ///< In an update, or in the sum that goes into the next.
  std::uint64_t dropped = 0;     ///< Late, or of a step that diverged or was broken off.
  std::uint64_t duplicates = 0;  ///< Came again and were not applied again.
  /// Never came, though later ones did, or others of the servers have it.
  std::uint64_t missing = 0;
  std::uint64_t staleness_max = 0;
  double staleness_sum = 0;
  std::array<std::uint64_t, kStalenessPlaces> staleness = {};
  /// The sum of a hash of every push that was applied, whatever their order: servers that have the
  /// same have applied the same pushes, each as often.
  std::uint64_t fingerprint = 0;

  void count_staleness(std::uint64_t of_push) {
    ++staleness[std::min<std::size_t>(of_push, kStalenessPlaces - 1)];
    staleness_max = std::max(staleness_max, of_push);
    staleness_sum += static_cast<double>(of_push);
  }

  /// A copy that costs no more than the places that are in use: those above `staleness_max` are
  /// zero in both.
  void become(const PushCounts& other) {
    const auto used =
        std::min<std::size_t>(std::max(staleness_max, other.staleness_max), kStalenessPlaces - 1) +
        1;
    applied = other.applied;
    dropped = other.dropped;
    duplicates = other.duplicates;
    missing = other.missing;
    staleness_max = other.staleness_max;
    staleness_sum = other.staleness_sum;
    std::copy_n(other.staleness.begin(), used, staleness.begin());
    fingerprint = other.fingerprint;
  }

  /// How many pushes had which staleness.
  std::map<std::uint64_t, std::uint64_t> histogram() const {
    std::map<std::uint64_t, std::uint64_t> found;
    for (std::size_t place = 0; place < staleness.size(); ++place) {
      if (staleness[place] > 0) found[place] = staleness[place];
    }
    return found;
  }

  /// Counts of a server that took over from another without what that one had counted.
  void add(const PushCounts& more) {
    applied += more.applied;
    dropped += more.dropped;
    duplicates += more.duplicates;
    missing += more.missing;
    staleness_max = std::max(staleness_max, more.staleness_max);
    staleness_sum += more.staleness_sum;
    for (std::size_t i = 0; i < staleness.size(); ++i) staleness[i] += more.staleness[i];
    fingerprint += more.fingerprint;
  }
};

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
               const PushCounts& counts);

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

  const PushCounts& counts() const { return counts_; }
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
  PushCounts counts_;
};

}  // namespace cohort::server
