#include "cluster/membership.h"

#include <algorithm>

namespace cohort::cluster {

void Membership::ready(int worker, std::int64_t step) {
  members_[worker] = {.state = State::ready, .step = step};
  // Nobody leaves a view without a reason that holds for all.
  if (view_.rank_of(worker)) broken_ = true;
}

void Membership::lose(int worker) {
  const bool trained = is_training(worker);
  members_.erase(worker);
  if (trained && options_.loss_stops_all) broken_ = true;
}

bool Membership::is_training(int worker) const {
  const auto member = members_.find(worker);
  return member != members_.end() && member->second.state == State::training;
}

int Membership::count(State state) const {
  return static_cast<int>(std::ranges::count_if(
      members_, [&](const auto& member) { return member.second.state == state; }));
}

bool Membership::has_state() const {
  return std::ranges::any_of(members_, [](const auto& member) {
    return member.second.state == State::training || member.second.step >= 0;
  });
}

bool Membership::view_is_stale() const {
  if (broken_ || closing_) return true;
  if (count(State::training) > options_.workers) return true;
  // Newcomers that there is room for.
  return count(State::ready) > 0 && count(State::training) < options_.workers;
}

bool Membership::wants_pause() const {
  return view_is_stale() && count(State::training) > 0;
}

// Who shall be rank 0 and the ranks after it. The chief's state is everybody's where one has none,
// so whoever has come furthest comes first; among equals nobody changes place without need: the old
// ranks in their order, then newcomers by their number.
std::vector<int> Membership::in_order() const {
  std::vector<int> workers;
  for (const auto& [worker, member] : members_) {
    if (member.state == State::ready) workers.push_back(worker);
  }
  const auto old_place = [&](int worker) {
    return view_.rank_of(worker).value_or(view_.world() + worker);
  };
  std::ranges::sort(workers, [&](int a, int b) {
    // Where workers go at their own pace, more steps say nothing: only whether there is any state.
    const auto progress = [&](int worker) {
      const std::int64_t step = members_.at(worker).step;
      return options_.loss_stops_all ? step : std::min<std::int64_t>(step, 0);
    };
    const std::int64_t step_a = progress(a);
    const std::int64_t step_b = progress(b);
    return step_a != step_b ? step_a > step_b : old_place(a) < old_place(b);
  });
  return workers;
}

// There is a next view when the one before is of no use any more, nobody trains in it, and enough
// are ready. Who is ready and finds no room in it is forgotten: it was sent away, or will be.
std::optional<View> Membership::next() {
  if (!view_is_stale() || count(State::training) > 0) return std::nullopt;
  const int ready = count(State::ready);
  const int fewest = options_.min_workers > 0 ? options_.min_workers : options_.workers;
  const int needed = closing_ ? 1 : std::min(fewest, options_.workers);
  // Who is just being started is worth the wait: a view without it would end at once.
  const bool more_to_come = count(State::awaited) > 0 && ready < options_.workers && !closing_;
  if (ready < needed || more_to_come) return std::nullopt;
  View next{.generation = view_.generation + 1, .workers = in_order(), .closing = closing_};
  const auto wanted = static_cast<std::size_t>(options_.workers);
  if (next.workers.size() > wanted) next.workers.resize(wanted);
  std::erase_if(members_, [&](const auto& member) {
    return member.second.state == State::ready && !next.rank_of(member.first);
  });
  for (const int worker : next.workers) members_[worker].state = State::training;
  broken_ = false;
  view_ = next;
  return next;
}

}  // namespace cohort::cluster
