#include "bench/saved_checkpoints.h"

#include <fstream>
#include <regex>
#include <string>

namespace cohort {

std::vector<double> saved_checkpoints(const std::filesystem::path& run_dir) {
  static const std::regex kSaved("checkpoint of step [0-9]+ saved in ([0-9.]+) s");
  std::ifstream lines(run_dir / "logs" / "worker-0.log");
  std::vector<double> seconds;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, kSaved)) seconds.push_back(std::stod(found[1]));
  }
  return seconds;
}

}  // namespace cohort
