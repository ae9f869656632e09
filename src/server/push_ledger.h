#pragma once

#include <cstdint>
#include <vector>

#include "server/shard.h"

namespace cohort {

/// Which pushes of every worker have come, and what became of them: none is applied twice, none is
/// lost unseen.
class PushLedger {
 public:
  explicit PushLedger(int workers) : last_(static_cast<std::size_t>(workers)) {}

  /// The sequence number of the worker's newest push; 0 before the first.
  std::uint64_t last(int worker) const { return last_[static_cast<std::size_t>(worker)]; }
  bool has_come(int worker, std::uint64_t sequence) const { return sequence <= last(worker); }

  /// A push that has not come before. Numbers it leaves out are counted as missing.
  void accept(int worker, std::uint64_t sequence);

  void record_duplicate() { ++counts_.duplicates; }
  void record_applied(std::uint64_t staleness);
  void record_dropped(std::uint64_t staleness);

  const PushCounts& counts() const { return counts_; }

 private:
  std::vector<std::uint64_t> last_;
  PushCounts counts_;
};

}  // namespace cohort
