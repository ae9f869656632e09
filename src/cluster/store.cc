#include "cluster/store.h"

#include <charconv>

#include "base/fail.h"

namespace cohort {

namespace {

std::int64_t parse_counter(const std::string& key, const std::string& value) {
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end) {
    fail(ErrorCode::invalid,
         "The key \"{}\" of the store holds \"{}\", which is not a counter to add to.", key, value);
  }
  return number;
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
  std::int64_t sum = amount;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = values_.try_emplace(key, "0");
    sum += parse_counter(key, entry->second);
    entry->second = std::to_string(sum);
  }
  changed_.notify_all();
  return sum;
}

std::optional<std::string> MemoryStore::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto entry = values_.find(key);
  if (entry == values_.end()) return std::nullopt;
  return entry->second;
}

}  // namespace cohort
