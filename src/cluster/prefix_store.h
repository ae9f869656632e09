#pragma once

#include <functional>
#include <utility>

#include "cluster/store.h"

namespace cohort {

/// A part of a store in which all keys begin with the same words: what one group of tasks says
/// there is not seen by the next. The store must outlive it.
class PrefixStore : public Store {
 public:
  /// `abandoned` may be empty; once it returns true, nobody waits for a key any longer: get()
  /// throws Error(peer_lost).
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

}  // namespace cohort
