#include "chaos/chaos.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "base/deadline.h"
#include "base/files.h"
#include "chaos/faults/fault_schedule.h"
#include "chaos/movement.h"
#include "chaos/report.h"
#include "chaos/round.h"
#include "chaos/watch/leftovers.h"

namespace cohort::chaos {
namespace {

constexpr int kEventsInRound = 3;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// What a user types to have the same session again.
std::string replay_command(const ChaosOptions& options) {
  std::string command = fmt::format("cohort chaos {} --seed {} --minutes {}", options.job_file,
                                    options.seed, options.minutes);
  if (options.events > 0) command += fmt::format(" --events {}", options.events);
  if (!options.strategies.empty()) command += " --strategies " + options.strategies;
  if (!options.slow_disk.empty()) command += " --slow-disk " + options.slow_disk.string();
  for (const std::string& setting : options.overrides) command += " --set '" + setting + "'";
  return command;
}

/// Where only a few events are wanted, rounds have fewer, so that they reach all strategies.
int events_in_round(const ChaosOptions& options, std::size_t strategies) {
  if (options.events == 0) return kEventsInRound;
  return std::clamp(options.events / static_cast<int>(strategies), 1, kEventsInRound);
}

/// One event in a line.
std::string outcome(const EventResult& result) {
  const std::string what =
      fmt::format("  {} of the {}", name_of(result.event.fault), name_of(result.event.role));
  if (!result.happened) return what + ": it did not happen before the run was over";
  const std::string where = fmt::format("{} ({}) after step {}", what, result.target, result.step);
  if (!result.recovered) return where + ": NOT RECOVERED";
  return fmt::format("{}: a later step after {:.2f} s", where, result.recovery_seconds);
}

void tell(const RoundResult& round) {
  say(fmt::format("round {}: {}, {:.1f} s", round.plan.number, round.plan.strategy.name,
                  round.seconds));
  for (const EventResult& event : round.events) say(outcome(event));
  for (const std::string& violation : round.violations) say("  VIOLATION: " + violation);
}

}  // namespace

int run_chaos(const ChaosOptions& options) {
  const auto strategies = choose_strategies(options.strategies, options.size);
  const Deadline end = Deadline::in_seconds(60 * options.minutes);
  const int in_round = events_in_round(options, strategies.size());
  FaultSchedule schedule(options.seed, strategies, !options.slow_disk.empty());
  adopt_orphans();
  create_folder(options.folder);
  say(fmt::format("seed {}; to do this again: {}", options.seed, replay_command(options)));

  std::optional<MovementJob> movement;
  std::map<std::string, FinishedRun> quiet;
  std::vector<RoundResult> rounds;
  int happened = 0;
  while (!end.passed() && (options.events == 0 || happened < options.events)) {
    RoundPlan plan = schedule.next(in_round);
    if (options.events > 0) {
      const auto left = static_cast<std::size_t>(options.events - happened);
      plan.events.resize(std::min(plan.events.size(), left));
    }
    const std::string& name = plan.strategy.name;
    if (plan.strategy.movement && !movement) movement.emplace(options);
    MovementJob* const moves = plan.strategy.movement ? &*movement : nullptr;
    const ChaosOptions& used = moves != nullptr ? moves->options() : options;
    if (!quiet.contains(name)) quiet[name] = run_quietly(used, plan.strategy);
    rounds.push_back(run_round(used, plan, quiet[name], moves));
    happened +=
        static_cast<int>(std::ranges::count(rounds.back().events, true, &EventResult::happened));
    tell(rounds.back());
    write_file_atomically(options.folder / "chaos.json",
                          report_json(options, replay_command(options), rounds));
  }
  say(fmt::format("\n{}report: {}", report_text(rounds), (options.folder / "chaos.json").string()));
  return all_violations(rounds).empty() ? 0 : 1;
}

}  // namespace cohort::chaos
