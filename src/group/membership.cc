#include "group/membership.h"

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
  return {.engine = {whole.engine->group(ranks, deadline).release(), keeps_whole},
          .connect = [connect = whole.connect, prefix] {
            return std::make_unique<StorePart>(connect(), prefix);
          }};
}

}  // namespace cohort::group
