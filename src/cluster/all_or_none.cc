#include "cluster/all_or_none.h"

#include <cohort/error.h>

namespace cohort {
namespace {

const std::string kAll = "all";
const std::string kNone = "none";

}  // namespace

// Whether a count or a decision that got no answer in time was made, nobody knows: all_arrived()
// will tell.
void AllOrNone::arrive() {
  try {
    if (store_.add(key_ + "/arrived", 1) == members_) store_.set_once(key_ + "/decision", kAll);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
  }
}

bool AllOrNone::all_arrived() {
  for (;;) {
    try {
      return store_.set_once(key_ + "/decision", kNone) == kAll;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
    }
  }
}

}  // namespace cohort
