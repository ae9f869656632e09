#include "server/push_ledger.h"

namespace cohort {

void PushLedger::accept(int worker, std::uint64_t sequence) {
  std::uint64_t& last = last_[static_cast<std::size_t>(worker)];
  counts_.missing += sequence - last - 1;
  last = sequence;
}

void PushLedger::record_applied(std::uint64_t staleness) {
  ++counts_.applied;
  ++counts_.staleness[staleness];
}

void PushLedger::record_dropped(std::uint64_t staleness) {
  ++counts_.dropped;
  ++counts_.staleness[staleness];
}

}  // namespace cohort
