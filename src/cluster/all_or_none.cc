#include "cluster/all_or_none.h"

namespace cohort {
namespace {

const std::string kAll = "all";
const std::string kNone = "none";

}  // namespace

void AllOrNone::arrive() {
  if (store_.add(key_ + "/arrived", 1) == members_) store_.set_once(key_ + "/decision", kAll);
}

bool AllOrNone::all_arrived() {
  return store_.set_once(key_ + "/decision", kNone) == kAll;
}

}  // namespace cohort
