#include "cluster/store.h"

#include <fcntl.h>

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

/// With the lock held: what the key has now. Throws before anything changes.
const std::string* MemoryStore::put(const std::string& key, const std::string& value) {
  if (const auto entry = values_.find(key); entry != values_.end()) return &entry->second;
  const std::size_t cost = kStoreKeyCost + key.size() + value.size();
  if (bytes_ + cost > kMaxStoreBytes) {
    fail(ErrorCode::no_space, "The store has no room for the key \"{}\".", excerpt(key));
  }
  bytes_ += cost;
  return &values_.emplace(key, value).first->second;
}

void MemoryStore::set(const std::string& key, const std::string& value) {
  {
    const std::lock_guard lock(mutex_);
    if (*put(key, value) != value) {
      fail(ErrorCode::invalid, "The key \"{}\" of the store is set, and stays what it is.",
           excerpt(key));
    }
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
    put(key, "0");
    values_[key] = std::to_string(*sum);
  }
  changed_.notify_all();
  return *sum;
}

std::string MemoryStore::set_once(const std::string& key, const std::string& value) {
  std::string stands;
  {
    const std::lock_guard lock(mutex_);
    stands = *put(key, value);
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

void MemoryStore::give(const std::string& key, const os::SharedMemory& memory, int takers) {
  UniqueFd descriptor(::fcntl(memory.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!descriptor) fail_errno("Cannot hand over shared memory");
  give(key, Handed{std::move(descriptor), memory.size()}, takers);
}

void MemoryStore::give(const std::string& key, Handed memory, int takers) {
  if (takers <= 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (untaken_.size() >= kMaxUntaken) {
      fail(ErrorCode::no_space, "The store has {} pieces of memory that nobody took.",
           untaken_.size());
    }
    if (!untaken_.emplace(key, Untaken{std::move(memory), takers}).second) {
      fail(ErrorCode::invalid, "Memory was given as \"{}\" before.", excerpt(key));
    }
  }
  changed_.notify_all();
}

std::optional<MemoryStore::Handed> MemoryStore::find_memory(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return take_now(key);
}

void MemoryStore::withdraw(const std::string& key) {
  const std::lock_guard lock(mutex_);
  untaken_.erase(key);
}

/// With the lock held.
std::optional<MemoryStore::Handed> MemoryStore::take_now(const std::string& key) {
  const auto entry = untaken_.find(key);
  if (entry == untaken_.end()) return std::nullopt;
  Untaken& untaken = entry->second;
  if (untaken.takers == 1) {
    Handed handed = std::move(untaken.memory);
    untaken_.erase(entry);
    return handed;
  }
  UniqueFd descriptor(::fcntl(untaken.memory.descriptor.get(), F_DUPFD_CLOEXEC, 0));
  if (!descriptor) fail_errno("Cannot hand over shared memory");
  --untaken.takers;  // Who got nothing has not taken it.
  return Handed{std::move(descriptor), untaken.memory.bytes};
}

os::SharedMemory MemoryStore::take(const std::string& key, os::SharedMemory::Pages pages,
                                   Deadline deadline) {
  std::optional<Handed> handed;
  {
    std::unique_lock lock(mutex_);
    const auto is_given = [&] { return (handed = take_now(key)).has_value(); };
    if (!changed_.wait_until(lock, deadline.at(), is_given)) {
      fail(ErrorCode::timeout, "Nobody gave the memory \"{}\" before the deadline.", key);
    }
  }
  return os::SharedMemory::adopt(std::move(handed->descriptor), handed->bytes, pages);
}

const Pass& MemoryStore::pass() {
  const std::lock_guard lock(mutex_);
  if (!pass_) pass_ = Pass::draw();
  return *pass_;
}

const Pass& PrefixStore::pass() {
  if (prefix_.empty()) return store_.pass();
  std::call_once(pass_once_, [this] {
    pass_ = store_.pass();
    pass_->secret = pass_->secret.of(prefix_);
  });
  return *pass_;
}

template <class Wait>
auto PrefixStore::while_not_abandoned(const std::string& key, Deadline deadline, Wait&& wait) {
  if (!abandoned_) return wait(prefix_ + key, deadline);
  for (;;) {
    const Duration left = deadline.remaining();
    try {
      return wait(prefix_ + key, Deadline::in(std::min(left, kLook)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || deadline.passed()) throw;
    }
    if (abandoned_()) {
      fail(ErrorCode::peer_lost, "a task was lost while others waited for {}{}", prefix_, key);
    }
  }
}

std::string PrefixStore::get(const std::string& key, Deadline deadline) {
  return while_not_abandoned(key, deadline, [this](const std::string& whole, Deadline until) {
    return store_.get(whole, until);
  });
}

os::SharedMemory PrefixStore::take(const std::string& key, os::SharedMemory::Pages pages,
                                   Deadline deadline) {
  return while_not_abandoned(key, deadline, [&](const std::string& whole, Deadline until) {
    return store_.take(whole, pages, until);
  });
}

}  // namespace cohort::cluster
