#pragma once

#include <string>
#include <vector>

#include "chaos/round.h"

namespace cohort::chaos {

/// What a session found, for people (tables and a last line) and for programs (chaos.json). All are
/// pure functions of the rounds so far, so that they can be called after each round.

/// How the events of one kind went.
struct EventFigures {
  std::string name;
  int events = 0;
  int recovered = 0;
  double median_seconds = 0;  ///< Of those that recovered; 0 where none did.
  double worst_seconds = 0;
};

/// The figures of all events that happened, sorted by name: by fault and role ("kill, worker"), or
/// by strategy.
std::vector<EventFigures> figures_by_fault(const std::vector<RoundResult>& rounds);
std::vector<EventFigures> figures_by_strategy(const std::vector<RoundResult>& rounds);

/// The same as tables for people; then how many events did not happen, all violations, and a last
/// line: "9 events, 9 recovered, nothing lost".
std::string report_text(const std::vector<RoundResult>& rounds);

/// Everything, for programs. `replay` is the command that does it all again.
std::string report_json(const ChaosOptions& options, const std::string& replay,
                        const std::vector<RoundResult>& rounds);

/// Of all rounds, with the round they were found in.
std::vector<std::string> all_violations(const std::vector<RoundResult>& rounds);

}  // namespace cohort::chaos
