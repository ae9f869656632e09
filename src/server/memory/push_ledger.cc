#include "server/memory/push_ledger.h"

#include "base/fail.h"
#include "server/memory/shard_memory.h"

namespace cohort::server {
namespace {

/// Spreads every bit of the value over all of the result (the finish of splitmix64).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

/// Of its name alone, which stays the same when it is made again.
std::uint64_t hash_of(const RequestHeader& push) {
  const auto generation = push.is_again() ? push.again_generation : push.generation;
  const auto worker = push.is_again() ? push.again_worker : push.worker;
  return mixed(mixed(mixed(static_cast<std::uint64_t>(generation) + 1) +
                     static_cast<std::uint64_t>(worker) + 1) +
               push.sequence);
}

}  // namespace

void PushLedger::restore(std::int64_t generation, std::span<const LedgerEntry> entries,
                         const cluster::PushCounts& counts) {
  generation_ = generation;
  before_.assign(entries.begin(), entries.end());
  counts_ = counts;
}

void PushLedger::check_again(const RequestHeader& push) {
  const auto worker = static_cast<std::uint64_t>(push.again_worker);
  if (push.again_worker >= 0 && worker < ShardMemory::kMostWorkers) return;
  fail(ErrorCode::invalid, "worker {} makes a push of worker {} again; there is none", push.worker,
       push.again_worker);
}

bool PushLedger::has_come(const RequestHeader& push) const {
  if (!push.is_again()) return push.sequence <= last(push.worker);
  // Once a later group has begun all of it is settled; one who was lost just then asks all the
  // same.
  if (push.again_generation != generation_) return push.again_generation < generation_;
  const auto worker = static_cast<std::size_t>(push.again_worker);
  return worker < before_.size() && push.sequence <= before_[worker].settled;
}

void PushLedger::begin(std::int64_t generation) {
  begun_ = true;
  generation_ = generation;
}

/// Of a group that the memory knows nothing of, because it was lost and an older copy took its
/// place, nothing is settled here.
void PushLedger::accept_again(const RequestHeader& push) {
  if (push.again_generation != generation_) before_.clear();
  generation_ = push.again_generation;
  const auto worker = static_cast<std::size_t>(push.again_worker);
  if (before_.size() <= worker) before_.resize(worker + 1);
}

void PushLedger::accept(const RequestHeader& push) {
  if (push.is_again()) return accept_again(push);
  begin(push.generation);
  std::uint64_t& last = last_[static_cast<std::size_t>(push.worker)];
  counts_.missing += push.sequence - last - 1;
  last = push.sequence;
}

void PushLedger::settle(const RequestHeader& push) {
  const int worker = push.is_again() ? push.again_worker : push.worker;
  LedgerEntry& entry = (push.is_again() ? before_ : settled_)[static_cast<std::size_t>(worker)];
  // It was counted when the servers were compared.
  if (push.is_again() && push.sequence <= entry.known) --counts_.missing;
  entry.settled = push.sequence;
}

void PushLedger::settle_applied(const RequestHeader& push) {
  settle(push);
  counts_.fingerprint += hash_of(push);
}

void PushLedger::record_applied(std::uint64_t staleness) {
  ++counts_.applied;
  counts_.count_staleness(staleness);
}

void PushLedger::record_dropped(std::uint64_t staleness) {
  ++counts_.dropped;
  counts_.count_staleness(staleness);
}

}  // namespace cohort::server
