#include "base/activity.h"

#include <iterator>

namespace cohort {
namespace {

constexpr const char* kWaits[] = {"nothing",
                                  "sum over the workers",
                                  "what the workers tell each other",
                                  "broadcast of the chief's model",
                                  "all-reduce of the gradients",
                                  "all-reduce of bucket",
                                  "update of the servers",
                                  "work from the servers",
                                  "parameters of the servers"};
constexpr const char* kWorks[] = {"making steps", "finishing a checkpoint", "forming a group",
                                  "saving"};

static_assert(std::size(kWaits) == static_cast<std::size_t>(WaitFor::servers_parameters) + 1);
static_assert(std::size(kWorks) == static_cast<std::size_t>(BusyWith::saving) + 1);

}  // namespace

const char* words_of(WaitFor what) {
  const auto index = static_cast<std::size_t>(what);
  return index < std::size(kWaits) ? kWaits[index] : "something unknown";
}

const char* words_of(BusyWith what) {
  const auto index = static_cast<std::size_t>(what);
  return index < std::size(kWorks) ? kWorks[index] : "busy with something unknown";
}

}  // namespace cohort
