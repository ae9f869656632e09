#pragma once

#include <cstdint>
#include <set>

#include "base/log.h"

namespace cohort::gossip {

/// What a worker looks at before it uses a parcel of a peer: numbers that are not finite would
/// spread from model to model and out of none, a weight that nobody can have would make the sender's
/// model everybody's, and of a message that cannot be read there is nothing to use. Such a parcel is
/// left out and counted; of each peer's first the log says so, with its rank. One thread at a time.
class Screen {
 public:
  /// No parcel weighs more than `most_weight`.
  explicit Screen(double most_weight) : most_weight_(most_weight) {}

  /// Whether the weight is one that a parcel can have.
  bool is_weight(double weight) const { return weight >= 0 && weight <= most_weight_; }

  /// Whether the parcel may be used, given whether it can be read and all its numbers are finite.
  bool passes(int peer, double weight, bool finite) {
    if (finite && is_weight(weight)) return true;
    ++left_out_;
    if (told_.insert(peer).second) {
      log_warn(
          "rank {} sent {}; what it sends of that kind is left out", peer,
          finite ? "a weight that none can have" : "numbers that are not finite or cannot be read");
    }
    return false;
  }

  /// How many did not.
  std::int64_t left_out() const { return left_out_; }

 private:
  double most_weight_;
  std::int64_t left_out_ = 0;
  std::set<int> told_;  // Peers of whom the log has said it.
};

}  // namespace cohort::gossip
