#include "chaos/chaos_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/names.h"

namespace cohort::chaos {
namespace {

/// Steps between two averages: few enough that a round has many averages to disturb.
constexpr std::int64_t kAveragedSteps = 8;

/// A row of the table of strategies with the settings that make a job train so. A quorum is one
/// less than all, so that there is always somebody who comes late.
TestedStrategy tested(const kinds::StrategyWay& way, const ClusterSize& size) {
  const int servers = way.traits.uses_servers ? std::max(1, size.servers) : 0;
  TestedStrategy strategy{.name = way.name,
                          .settings = kinds::settings_of(way),
                          .servers = servers,
                          .traits = way.traits};
  strategy.settings.push_back(fmt::format("cluster.servers={}", servers));
  if (way.traits.takes_quorum) {
    strategy.settings.push_back(fmt::format("strategy.quorum={}", std::max(1, size.workers - 1)));
  }
  if (way.kind == "averaging") {
    strategy.settings.push_back(fmt::format("strategy.every={}", kAveragedSteps));
    strategy.steps_per_push = kAveragedSteps;
  }
  return strategy;
}

/// All-reduce in place in shared memory, by messages in shared memory, and by messages over TCP:
/// the result is the same, but what a death can hit in the middle of is not.
std::vector<TestedStrategy> forms_of_allreduce(const TestedStrategy& strategy) {
  struct Form {
    const char* suffix;
    const char* algorithm;
    const char* engine;
  };
  std::vector<TestedStrategy> forms;
  for (const Form& form :
       {Form{"", "auto", "shm"}, Form{"-ring", "ring", "shm"}, Form{"-gloo", "ring", "gloo"}}) {
    forms.push_back(strategy);
    forms.back().name += form.suffix;
    forms.back().settings.push_back(fmt::format("strategy.algorithm={}", form.algorithm));
    forms.back().settings.push_back(fmt::format("cluster.engine={}", form.engine));
  }
  return forms;
}

}  // namespace

std::vector<TestedStrategy> all_tested_strategies(const ClusterSize& size) {
  std::vector<TestedStrategy> all;
  for (const kinds::StrategyWay& way : kinds::strategy_ways()) {
    const TestedStrategy strategy = tested(way, size);
    if (way.kind == "allreduce") {
      std::ranges::move(forms_of_allreduce(strategy), std::back_inserter(all));
    } else {
      all.push_back(strategy);
    }
  }
  const auto with_the_users_job = all.size();
  for (std::size_t i = 0; i < with_the_users_job; ++i) {
    if (all[i].traits.moves_exactly) continue;
    all.push_back(all[i]);
    all.back().name += "-movement";
    all.back().movement = true;
  }
  return all;
}

std::vector<TestedStrategy> choose_strategies(const std::string& names, const ClusterSize& size) {
  std::vector<TestedStrategy> all = all_tested_strategies(size);
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const TestedStrategy& strategy : all) known.push_back(strategy.name);
  std::vector<TestedStrategy> chosen;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    check_known("--strategies", name, known);
    chosen.push_back(*std::ranges::find(all, name, &TestedStrategy::name));
  }
  return chosen;
}

std::vector<std::string> train_words(const ChaosOptions& options, const TestedStrategy& strategy,
                                     const std::filesystem::path& run_dir,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> settings = {"cluster.max_restarts=1000", "log.every_steps=1"};
  settings.insert(settings.end(), more.begin(), more.end());
  settings.insert(settings.end(), strategy.settings.begin(), strategy.settings.end());
  settings.insert(settings.end(), options.overrides.begin(), options.overrides.end());
  std::vector<std::string> words = {options.job_file, "--run-dir", run_dir.string()};
  for (const std::string& setting : settings) {
    words.emplace_back("--set");
    words.push_back(setting);
  }
  return words;
}

}  // namespace cohort::chaos
