#include "chaos/session.h"

namespace cohort {

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

}  // namespace cohort
