#include "cluster/all_or_none.h"

namespace cohort {
namespace {

const std::string kAll = "all";
const std::string kNone = "none";

}  // namespace

void AllOrNone::arrive() {
  if (store_.add(key_ + "/arrived", 1) == members_ && decides_first()) {
    store_.set(key_ + "/decision", kAll);
  }
}

bool AllOrNone::all_arrived(Deadline deadline) {
  if (decides_first()) store_.set(key_ + "/decision", kNone);
  return store_.get(key_ + "/decision", deadline) == kAll;
}

bool AllOrNone::decides_first() {
  return store_.add(key_ + "/decided", 1) == 1;
}

}  // namespace cohort
