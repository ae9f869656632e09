#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/deadline.h"

namespace cohort::cluster {

/// Where the tasks of a run find each other: a small table of keys and values that all of them see.
/// Values are small (addresses, paths, counts), and nothing is ever removed: a group of tasks that
/// follows another uses other keys (PrefixStore).
///
///   MemoryStore     within a process; also the state behind a StoreServer
///   TcpStore        the same of other processes and hosts (cluster/tcp_store.h)
///   PrefixStore     a part of any store
///
/// Who waits for a key and who sets it may come in any order. Of a MemoryStore any thread may call
/// anything; of the others see their comments.
class Store {
 public:
  virtual ~Store() = default;

  /// Replaces what the key had.
  virtual void set(const std::string& key, const std::string& value) = 0;

  /// Waits until somebody has set `key`; throws Error(timeout) naming the key.
  virtual std::string get(const std::string& key, Deadline deadline) = 0;

  /// Adds to a counter that starts at 0 and returns the sum: of several who add at the same time
  /// each gets another one. The key has the sum in decimal. Throws Error(invalid) where the key has
  /// a value that is no number, or the sum has no room.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;

  /// Sets a key that nobody has set, and returns what it has then: of several who do it at the same
  /// time one decides, and all learn what was decided.
  virtual std::string set_once(const std::string& key, const std::string& value) = 0;
};

/// A store within one process: the state behind a StoreServer, and what tests and threads use.
class MemoryStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  std::string set_once(const std::string& key, const std::string& value) override;

  /// The value now, without waiting.
  std::optional<std::string> find(const std::string& key);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// A part of a store in which all keys begin with the same words: what one group of tasks says
/// there is not seen by the next. The store must outlive it, and may be used by as many threads as
/// this.
class PrefixStore : public Store {
 public:
  /// `abandoned`, which may be empty, says that the group is over, because one of it was lost: it
  /// is asked every 50 ms by who waits, and once it returns true get() throws Error(peer_lost)
  /// instead of waiting for a key that nobody will set.
  PrefixStore(Store& store, std::string prefix, std::function<bool()> abandoned = {})
      : store_(store), prefix_(std::move(prefix)), abandoned_(std::move(abandoned)) {}

  void set(const std::string& key, const std::string& value) override {
    store_.set(prefix_ + key, value);
  }
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return store_.add(prefix_ + key, amount);
  }
  std::string set_once(const std::string& key, const std::string& value) override {
    return store_.set_once(prefix_ + key, value);
  }

 private:
  Store& store_;
  std::string prefix_;
  std::function<bool()> abandoned_;
};

}  // namespace cohort::cluster
