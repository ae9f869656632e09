#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "cluster/pass.h"
#include "os/memory.h"

namespace cohort::cluster {

/// For Store::give: of so many takers nobody keeps count.
inline constexpr int kAnyTakers = 1 << 20;

/// Where the tasks of a run find each other: a small table of keys and values that all of them see,
/// and the counter over which tasks of one host hand each other memory. Values are small (addresses,
/// counts), written once, and never removed: a group of tasks that follows another uses other keys
/// (PrefixStore).
///
///   MemoryStore     within a process; also the state behind a StoreServer
///   SocketStore     the same of other processes and hosts (cluster/socket_store.h)
///   PrefixStore     a part of any store
///   HostStore       one for all hosts, joined with one of this host for memory
///
/// Who waits for a key and who sets it may come in any order. Of a MemoryStore any thread may call
/// anything; of the others see their comments.
class Store {
 public:
  virtual ~Store() = default;

  /// Once a key is set it stays: throws Error(invalid) where it has another value already. (The
  /// same again is nothing.)
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

  /// Lays memory down for `takers` others of this host to take; after that the store lets go of it
  /// (with kAnyTakers, when whoever gave it has gone). In keys of their own, also written once.
  /// Throws Error(unsupported) where the store is on another host.
  virtual void give(const std::string& key, const os::SharedMemory& memory, int takers) = 0;

  /// Waits until somebody has given it, and maps it. Throws as get() and SharedMemory::adopt() do.
  /// With a deadline that has passed it waits for the store alone: for what was given before.
  virtual os::SharedMemory take(const std::string& key, os::SharedMemory::Pages pages,
                                Deadline deadline) = 0;

  /// How keys end that the worker of this rank alone may write, "@worker-3": who serves the store
  /// refuses them of anybody else. (A rank is a worker's place in the group that this store is for,
  /// and the mark has its number in the run.) Keys without a mark, counters and decisions, are
  /// everybody's. A server's mark is mark_of().
  virtual std::string mark_of_rank(int rank) const {
    return mark_of({.role = Member::Role::worker, .number = rank});
  }

  /// With which tasks of this run connect to each other.
  virtual const Pass& pass() = 0;
};

/// Bytes of keys and values that a store takes, so that nobody can fill its process's memory, each
/// key with what it costs beside its text; and how many pieces of memory may lie there untaken.
inline constexpr std::size_t kMaxStoreBytes = std::size_t{64} << 20;
inline constexpr std::size_t kStoreKeyCost = 128;
inline constexpr std::size_t kMaxUntaken = 4096;

/// A store within one process: the state behind a StoreServer, and what tests and threads use. Its
/// pass is drawn when it is first asked for.
class MemoryStore : public Store {
 public:
  MemoryStore() = default;
  explicit MemoryStore(const Pass& pass) : pass_(pass) {}

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  std::string set_once(const std::string& key, const std::string& value) override;
  void give(const std::string& key, const os::SharedMemory& memory, int takers) override;
  os::SharedMemory take(const std::string& key, os::SharedMemory::Pages pages,
                        Deadline deadline) override;
  const Pass& pass() override;

  /// The value now, without waiting.
  std::optional<std::string> find(const std::string& key);

  /// Memory on its way from one task to others: a descriptor of it, and its size as its giver says.
  struct Handed {
    UniqueFd descriptor;
    std::size_t bytes = 0;
  };
  void give(const std::string& key, Handed memory, int takers);
  /// A descriptor of what was given, without waiting; nothing where nothing was.
  std::optional<Handed> find_memory(const std::string& key);
  /// Lets go of what nobody has taken.
  void withdraw(const std::string& key);

 private:
  struct Untaken {
    Handed memory;
    int takers = 0;
  };

  const std::string* put(const std::string& key, const std::string& value);
  std::optional<Handed> take_now(const std::string& key);

  std::mutex mutex_;  // Guards all that follows.
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;  // Of keys and values, with the cost of each key.
  std::map<std::string, Untaken> untaken_;
  std::optional<Pass> pass_;
};

/// A part of a store in which all keys begin with the same words: what one group of tasks says
/// there is not seen by the next. The store must outlive it, and may be used by as many threads as
/// this.
class PrefixStore : public Store {
 public:
  /// `abandoned`, which may be empty, says that the group is over, because one of it was lost: it
  /// is asked every 50 ms by who waits, and once it returns true the wait throws Error(peer_lost)
  /// instead of waiting for a key that nobody will set.
  ///
  /// `ranks` says which rank of the store each rank of the part is; empty where they are the same.
  PrefixStore(Store& store, std::string prefix, std::function<bool()> abandoned = {},
              std::vector<int> ranks = {})
      : store_(store),
        prefix_(std::move(prefix)),
        abandoned_(std::move(abandoned)),
        ranks_(std::move(ranks)) {}

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
  void give(const std::string& key, const os::SharedMemory& memory, int takers) override {
    store_.give(prefix_ + key, memory, takers);
  }
  os::SharedMemory take(const std::string& key, os::SharedMemory::Pages pages,
                        Deadline deadline) override;
  std::string mark_of_rank(int rank) const override {
    return store_.mark_of_rank(ranks_.empty() ? rank : ranks_.at(static_cast<std::size_t>(rank)));
  }
  /// One of the part alone: its secret follows from the store's and the prefix, so that what is made
  /// with it for one group is not taken for another's.
  const Pass& pass() override;

 private:
  /// `wait`, until the deadline, a little at a time, to look between whether the group is over.
  template <class Wait>
  auto while_not_abandoned(const std::string& key, Deadline deadline, Wait&& wait);

  Store& store_;
  std::string prefix_;
  std::function<bool()> abandoned_;
  std::vector<int> ranks_;
  std::once_flag pass_once_;
  std::optional<Pass> pass_;
};

/// A store for all hosts whose memory is handed over by another one, of this host. Both must outlive
/// it.
class HostStore : public Store {
 public:
  HostStore(Store& all, Store& host) : all_(all), host_(host) {}

  void set(const std::string& key, const std::string& value) override { all_.set(key, value); }
  std::string get(const std::string& key, Deadline deadline) override {
    return all_.get(key, deadline);
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return all_.add(key, amount);
  }
  std::string set_once(const std::string& key, const std::string& value) override {
    return all_.set_once(key, value);
  }
  void give(const std::string& key, const os::SharedMemory& memory, int takers) override {
    host_.give(key, memory, takers);
  }
  os::SharedMemory take(const std::string& key, os::SharedMemory::Pages pages,
                        Deadline deadline) override {
    return host_.take(key, pages, deadline);
  }
  std::string mark_of_rank(int rank) const override { return all_.mark_of_rank(rank); }
  const Pass& pass() override { return all_.pass(); }

 private:
  Store& all_;
  Store& host_;
};

}  // namespace cohort::cluster
