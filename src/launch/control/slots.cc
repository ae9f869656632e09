#include "launch/control/slots.h"

#include <algorithm>

namespace cohort {

void put_text(std::span<char> target, const std::string& text) {
  const std::size_t length = std::min(text.size(), target.size() - 1);
  std::copy_n(text.begin(), length, target.begin());
  target[length] = '\0';
}

void TaskSlot::fail_with(const Error& problem) {
  error_code = static_cast<int>(problem.code());
  error_rank = problem.rank().value_or(-1);
  put_text(error, problem.what());
  state.store(WorkerState::failed);
}

}  // namespace cohort
