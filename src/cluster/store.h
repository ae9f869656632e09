#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/deadline.h"

namespace cohort {

/// Where the tasks of a run find each other: keys that are set once and waited for. Values are
/// small (addresses, paths, counts).
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;

  /// Waits until somebody sets `key`; throws Error(timeout) naming the key.
  virtual std::string get(const std::string& key, Deadline deadline) = 0;

  /// Adds to a counter that starts at 0 and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;

  /// Sets a key that nobody has set, and returns what it has then: of several who do it at the same
  /// time, one has it its way and all get to know.
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

}  // namespace cohort
