#include "chaos/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace cohort::chaos {
namespace {

using Json = nlohmann::ordered_json;

/// Never called with none. (bench/ has one, too, but this room must not know it.)
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// The events that happened, gathered by what `kind` says of each.
std::vector<EventFigures> figures(const std::vector<RoundResult>& rounds,
                                  const std::function<std::string(const EventResult&)>& kind) {
  std::map<std::string, EventFigures> by_name;
  std::map<std::string, std::vector<double>> seconds;
  for (const RoundResult& round : rounds) {
    for (const EventResult& event : round.events) {
      if (!event.happened) continue;
      EventFigures& figure = by_name[kind(event)];
      figure.name = kind(event);
      ++figure.events;
      if (!event.recovered) continue;
      ++figure.recovered;
      seconds[figure.name].push_back(event.recovery_seconds);
    }
  }
  std::vector<EventFigures> all;
  for (auto& [name, figure] : by_name) {
    if (figure.recovered > 0) {
      figure.median_seconds = median(seconds[name]);
      figure.worst_seconds = std::ranges::max(seconds[name]);
    }
    all.push_back(figure);
  }
  return all;
}

std::string table(const char* heading, const std::vector<EventFigures>& rows) {
  std::string text = fmt::format("| {:<40} | {:>6} | {:>9} | {:>8} | {:>8} |\n", heading, "events",
                                 "recovered", "median s", "worst s");
  text += fmt::format("|{:-<42}|{:->7}:|{:->10}:|{:->9}:|{:->9}:|\n", "", "", "", "", "");
  for (const EventFigures& row : rows) {
    text += fmt::format("| {:<40} | {:>6} | {:>9} | {:>8.2f} | {:>8.2f} |\n", row.name, row.events,
                        row.recovered, row.median_seconds, row.worst_seconds);
  }
  return text;
}

Json json_of(const std::vector<EventFigures>& rows) {
  Json all = Json::array();
  for (const EventFigures& row : rows) {
    all.push_back({{"name", row.name},
                   {"events", row.events},
                   {"recovered", row.recovered},
                   {"median_seconds", row.median_seconds},
                   {"worst_seconds", row.worst_seconds}});
  }
  return all;
}

/// Whether the fault has a second victim.
bool is_two(Fault fault) {
  return fault == Fault::at_once || fault == Fault::meanwhile;
}

Json json_of(const EventResult& result) {
  Json all{{"fault", name_of(result.event.fault)},
           {"role", name_of(result.event.role)},
           {"at", result.event.at},
           {"point", result.event.point},
           {"other", is_two(result.event.fault) ? Json(name_of(result.event.other)) : Json()},
           {"target", result.target},
           {"step", result.step},
           {"happened", result.happened},
           {"recovered", result.recovered}};
  all["recovery_seconds"] = result.recovered ? Json(result.recovery_seconds) : Json();
  return all;
}

// chaos.json has all that a person needs to look into one round alone: the folder of its run, the
// faults as `--faults` takes them, the ends of the logs where something was wrong.
Json json_of(const RoundResult& round) {
  Json events = Json::array();
  for (const EventResult& event : round.events) events.push_back(json_of(event));
  return {{"round", round.plan.number},
          {"strategy", round.plan.strategy.name},
          {"faults", round.faults},
          {"run_dir", round.run.run_dir.string()},
          {"seconds", round.seconds},
          {"exit_code", round.exit_code},
          {"moved_steps", round.run.moved_steps ? Json(*round.run.moved_steps) : Json()},
          {"events", events},
          {"violations", round.violations},
          {"log_tails", round.log_tails}};
}

struct Counts {
  int planned = 0;
  int happened = 0;
  int recovered = 0;
};

Counts count(const std::vector<RoundResult>& rounds) {
  Counts all;
  for (const RoundResult& round : rounds) {
    for (const EventResult& event : round.events) {
      ++all.planned;
      all.happened += event.happened ? 1 : 0;
      all.recovered += event.recovered ? 1 : 0;
    }
  }
  return all;
}

}  // namespace

std::vector<EventFigures> figures_by_fault(const std::vector<RoundResult>& rounds) {
  return figures(rounds, [](const EventResult& result) {
    return fmt::format("{}, {}", name_of(result.event.fault), name_of(result.event.role));
  });
}

std::vector<EventFigures> figures_by_strategy(const std::vector<RoundResult>& rounds) {
  return figures(rounds, [](const EventResult& result) { return result.strategy; });
}

std::vector<std::string> all_violations(const std::vector<RoundResult>& rounds) {
  std::vector<std::string> all;
  for (const RoundResult& round : rounds) {
    for (const std::string& text : round.violations) {
      all.push_back(
          fmt::format("round {}, {}: {}", round.plan.number, round.plan.strategy.name, text));
    }
  }
  return all;
}

std::string report_text(const std::vector<RoundResult>& rounds) {
  std::string text = table("fault", figures_by_fault(rounds)) + "\n" +
                     table("strategy", figures_by_strategy(rounds)) + "\n";
  const Counts counts = count(rounds);
  if (counts.happened < counts.planned) {
    text += fmt::format(
        "{} planned event{} did not happen before the run was over; give the job more steps\n",
        counts.planned - counts.happened, counts.planned - counts.happened == 1 ? "" : "s");
  }
  const auto violations = all_violations(rounds);
  for (const std::string& violation : violations) text += violation + "\n";
  text += fmt::format("{} events, {} recovered, {}\n", counts.happened, counts.recovered,
                      violations.empty() ? std::string("nothing lost")
                                         : fmt::format("{} violation{}", violations.size(),
                                                       violations.size() == 1 ? "" : "s"));
  return text;
}

std::string report_json(const ChaosOptions& options, const std::string& replay,
                        const std::vector<RoundResult>& rounds) {
  const Counts counts = count(rounds);
  Json all{{"seed", options.seed},
           {"replay", replay},
           {"job", options.job_file},
           {"workers", options.size.workers},
           {"servers", options.size.servers},
           {"events",
            {{"planned", counts.planned},
             {"happened", counts.happened},
             {"recovered", counts.recovered}}},
           {"violations", all_violations(rounds)},
           {"by_fault", json_of(figures_by_fault(rounds))},
           {"by_strategy", json_of(figures_by_strategy(rounds))}};
  all["rounds"] = Json::array();
  for (const RoundResult& round : rounds) all["rounds"].push_back(json_of(round));
  return all.dump(2) + "\n";
}

}  // namespace cohort::chaos
