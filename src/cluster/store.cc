#include "cluster/store.h"

#include <algorithm>

#include "base/fail.h"
#include "base/integers.h"

namespace cohort::cluster {

namespace {

// How often a wait looks whether its group is abandoned.
constexpr Duration kLook = std::chrono::milliseconds(50);

std::int64_t parse_counter(const std::string& key, const std::string& value) {
  if (const auto number = parse_integer(value)) return *number;
  fail(ErrorCode::invalid,
       "The key \"{}\" of the store holds \"{}\", which is not a counter to add to.", excerpt(key),
       excerpt(value));
}

}  // namespace

void MemoryStore::set(const std::string& key, const std::string& value) {
  {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

std::string MemoryStore::get(const std::string& key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto is_set = [&] { return values_.contains(key); };
  if (!changed_.wait_until(lock, deadline.at(), is_set)) {
    fail(ErrorCode::timeout, "Nobody set the key \"{}\" in the store before the deadline.", key);
  }
  return values_.at(key);
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t amount) {
  std::optional<std::int64_t> sum;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = values_.find(key);
    sum = checked_sum(amount, entry == values_.end() ? 0 : parse_counter(key, entry->second));
    if (!sum) {
      fail(ErrorCode::invalid, "The counter \"{}\" of the store cannot count that far.",
           excerpt(key));
    }
    values_[key] = std::to_string(*sum);
  }
  changed_.notify_all();
  return *sum;
}

std::string MemoryStore::set_once(const std::string& key, const std::string& value) {
  std::string stands;
  {
    const std::lock_guard lock(mutex_);
    stands = values_.emplace(key, value).first->second;
  }
  changed_.notify_all();
  return stands;
}

std::optional<std::string> MemoryStore::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto entry = values_.find(key);
  if (entry == values_.end()) return std::nullopt;
  return entry->second;
}

std::string PrefixStore::get(const std::string& key, Deadline deadline) {
  if (!abandoned_) return store_.get(prefix_ + key, deadline);
  for (;;) {
    const Duration left = deadline.remaining();
    try {
      return store_.get(prefix_ + key, Deadline::in(std::min(left, kLook)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || deadline.passed()) throw;
    }
    if (abandoned_()) {
      fail(ErrorCode::peer_lost, "a task was lost while others waited for {}{}", prefix_, key);
    }
  }
}

}  // namespace cohort::cluster
