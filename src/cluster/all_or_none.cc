#include "cluster/all_or_none.h"

#include <cohort/error.h>

namespace cohort::cluster {
namespace {

const std::string kAll = "all";
const std::string kNone = "none";

}  // namespace

// It is not tried again after a timeout: the count may have been made, and one made twice would let
// the others go on without a member. One that was not made lets nobody go on, which does no harm.
void AllOrNone::arrive() {
  try {
    if (store_.add(key_ + "/arrived", 1) == members_) store_.set_once(key_ + "/decision", kAll);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
  }
}

bool AllOrNone::all_arrived() {
  for (;;) {  // Asking twice does no harm: the first who asked has decided.
    try {
      return store_.set_once(key_ + "/decision", kNone) == kAll;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
    }
  }
}

}  // namespace cohort::cluster
