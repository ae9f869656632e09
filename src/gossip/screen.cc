#include "gossip/screen.h"

#include "base/log.h"

namespace cohort::gossip {

bool Screen::passes(int peer, double weight, bool finite) {
  if (finite && is_weight(weight)) return true;
  ++left_out_;
  if (told_.insert(peer).second) {
    log_warn("rank {} sent {}; what it sends of that kind is left out", peer,
             finite ? "a weight that none can have" : "numbers that are not finite");
  }
  return false;
}

}  // namespace cohort::gossip
