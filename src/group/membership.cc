#include "group/membership.h"

#include <algorithm>
#include <utility>

namespace cohort::group {
namespace {

struct OwnedStore {
  std::unique_ptr<cluster::Store> store;
};

/// A part of a store that is this one's alone.
class StorePart : private OwnedStore, public cluster::PrefixStore {
 public:
  StorePart(std::unique_ptr<cluster::Store> whole, const std::string& prefix)
      : OwnedStore{std::move(whole)}, PrefixStore(*store, prefix) {}
};

}  // namespace

Membership part_of(const Membership& whole, const std::vector<int>& ranks,
                   const std::string& prefix, Deadline deadline) {
  // A group's engine must go before the one it was made from.
  const auto keeps_whole = [engine = whole.engine](transport::Engine* part) { delete part; };
  const auto server = std::ranges::find(ranks, whole.store_rank);
  return {.connect = [connect = whole.connect,
                      prefix] { return std::make_unique<StorePart>(connect(), prefix); },
          .engine = {whole.engine->group(ranks, deadline).release(), keeps_whole},
          .store_rank = server == ranks.end() ? -1 : static_cast<int>(server - ranks.begin()),
          .on_failure = whole.on_failure};
}

}  // namespace cohort::group
