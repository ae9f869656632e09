#pragma once

#include <cstdint>
#include <set>

#include "base/log.h"
#include "gossip/boxes/box.h"

namespace cohort::gossip {

/// The most that a peer can have in a job, of what is told with a message: more is left out. A
/// number that is finite can do as much harm as one that is not, where it is so large that all
/// others vanish beside it.
struct MostOfPeer {
  double weight = 0;
  double age = 0;
  double rate = 0;  ///< Of `rates`, for each of the pieces that the weight is then.
};

/// What a worker looks at before it uses a parcel of a peer: numbers that are not finite would
/// spread from model to model and out of none, a weight that nobody can have would make the sender's
/// model everybody's, and of a message that cannot be read there is nothing to use. Such a parcel is
/// left out and counted; of each peer's first the log says so, with its rank. One thread at a time.
class Screen {
 public:
  explicit Screen(const MostOfPeer& most) : most_(most) {}

  /// Whether the weight is one that a parcel can have.
  bool is_weight(double weight) const { return weight >= 0 && weight <= most_.weight; }

  /// Whether the parcel may be used, given whether it can be read and all its numbers are finite.
  bool passes(int peer, const Box::Taken& parcel, bool finite) {
    if (finite && can_be(parcel)) return true;
    ++left_out_;
    if (told_.insert(peer).second) {
      log_warn("rank {} sent {}; what it sends of that kind is left out", peer,
               finite ? "a weight, an age or rates that none can have"
                      : "numbers that are not finite or cannot be read");
    }
    return false;
  }

  /// How many did not.
  std::int64_t left_out() const { return left_out_; }

 private:
  /// A comparison with what is no number is false.
  bool can_be(const Box::Taken& parcel) const {
    constexpr double kRounding = 1.01;  // Of many rates that were added up.
    return is_weight(parcel.weight()) && parcel.age() >= 0 && parcel.age() <= most_.age &&
           parcel.rates() >= 0 && parcel.rates() <= kRounding * most_.rate * parcel.weight();
  }

  MostOfPeer most_;
  std::int64_t left_out_ = 0;
  std::set<int> told_;  // Peers of whom the log has said it.
};

}  // namespace cohort::gossip
