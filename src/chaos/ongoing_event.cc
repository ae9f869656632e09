#include "chaos/ongoing_event.h"

#include <fmt/format.h>

#include <algorithm>

namespace cohort {
namespace {

bool is_lost(const Victim& victim) {
  return victim.loss.has_value();
}

}  // namespace

std::string names_of(const std::vector<Victim>& victims) {
  std::string names;
  for (const Victim& victim : victims) {
    names += fmt::format("{}{} {}", names.empty() ? "" : " and ", victim.role, victim.number);
  }
  return names;
}

void OngoingEvent::look(const RunWatch& watch, std::set<std::size_t>& explained) {
  for (Victim& victim : victims) {
    for (const SeenLoss& loss : watch.losses()) {
      if (victim.loss) break;
      const bool is_it = loss.line >= line && loss.role == victim.role &&
                         loss.number == victim.number &&
                         (victim.pid == 0 || loss.pid == victim.pid);
      if (is_it && explained.insert(loss.line).second) victim.loss = loss;
    }
  }
  if (!all_lost()) return;
  std::size_t last = 0;
  for (const Victim& victim : victims) last = std::max(last, victim.loss->line);
  group = watch.group_after(last);
}

bool OngoingEvent::all_lost() const {
  return std::ranges::all_of(victims, is_lost);
}

bool OngoingEvent::any_lost() const {
  return std::ranges::any_of(victims, is_lost);
}

void OngoingEvent::forget_those_who_ended(const RunWatch& watch) {
  std::erase_if(victims, [&](const Victim& victim) {
    return !is_lost(victim) && std::ranges::any_of(watch.ends(), [&](const SeenEnd& end) {
      return end.role == victim.role && end.number == victim.number && end.pid == victim.pid;
    });
  });
}

}  // namespace cohort
