#include "kernel/fast_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <sstream>

#include "kernel/loaded_libraries.h"

namespace cohort {
namespace {

bool none_set(const GetVariable& get, std::initializer_list<const char*> names) {
  return std::none_of(names.begin(), names.end(),
                      [&](const char* name) { return get(name) != nullptr; });
}

}  // namespace

Machine this_machine() {
  return {this_cpu(), openblas_core(), openblas_knows};
}

std::vector<Setting> missing_settings(const Machine& machine, int threads, const GetVariable& get) {
  std::vector<Setting> missing;
  const std::string core = better_core(machine.cpu, machine.openblas_core, machine.knows_core);
  if (!core.empty() && none_set(get, {"OPENBLAS_CORETYPE"})) {
    missing.push_back({"OPENBLAS_CORETYPE", core, machine.openblas_core});
  }
  // The other two say the same to one implementation of OpenMP each, GNU's and LLVM's.
  if (threads > 1 && none_set(get, {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"})) {
    missing.push_back({"OMP_WAIT_POLICY", "PASSIVE", ""});
  }
  return missing;
}

std::optional<int> chosen_threads(const GetVariable& get) {
  const char* chosen = get("OMP_NUM_THREADS");
  const int threads = chosen == nullptr ? 0 : std::atoi(chosen);
  return threads > 0 ? std::optional(threads) : std::nullopt;
}

// NAME=VALUE/INSTEAD_OF, separated by spaces.
std::string to_mark(const std::vector<Setting>& settings) {
  std::string mark;
  for (const Setting& one : settings) {
    if (!mark.empty()) mark += ' ';
    mark += fmt::format("{}={}", one.name, one.value);
    if (!one.instead_of.empty()) mark += fmt::format("/{}", one.instead_of);
  }
  return mark;
}

std::vector<Setting> from_mark(const std::string& mark) {
  std::vector<Setting> settings;
  std::istringstream words(mark);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string value = word.substr(equals + 1);
    const auto slash = value.find('/');
    settings.push_back({word.substr(0, equals), value.substr(0, slash),
                        slash == std::string::npos ? "" : value.substr(slash + 1)});
  }
  return settings;
}

}  // namespace cohort
