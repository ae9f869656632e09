#include "launch/patience.h"

#include <utility>

namespace cohort::launch {

bool Movement::look(const ControlBlock& control, std::span<const int> workers,
                    Clock::time_point now) {
  // Steps count by as many as there are states, so that the one does not hide the other.
  constexpr std::int64_t kStates = 8;
  std::int64_t progress = 0;
  bool busy = false;
  for (const int worker : workers) {
    const WorkerCard& card = control.card(worker);
    const TaskState state = card.state.load();
    busy = busy || state == TaskState::validating || card.activity.is_working(now);
    progress += card.step.load() * kStates + static_cast<std::int64_t>(state);
  }
  return std::exchange(last_, progress) != progress || busy;
}

std::vector<int> in_the_way(const ControlBlock& control, std::span<const int> workers) {
  std::vector<int> found;
  for (const int worker : workers) {
    if (control.card(worker).activity.waiting.load() == WaitFor::nothing) found.push_back(worker);
  }
  if (found.empty()) found.assign(workers.begin(), workers.end());
  return found;
}

}  // namespace cohort::launch
