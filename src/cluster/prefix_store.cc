#include "cluster/prefix_store.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort {
namespace {

// How often a wait looks whether it is still of use.
constexpr Duration kLook = std::chrono::milliseconds(50);

}  // namespace

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

}  // namespace cohort
