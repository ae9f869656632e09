#include "kernel/fast_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <sstream>

namespace cohort::kernel {
namespace {

struct Core {
  std::string_view name;
  Vectors vectors;
};

/// Cores of OpenBLAS for x86, by the widest vectors of their kernels.
constexpr Core kCores[] = {
    {"Katmai", Vectors::sse},        {"Coppermine", Vectors::sse},
    {"Northwood", Vectors::sse},     {"Prescott", Vectors::sse},
    {"Banias", Vectors::sse},        {"Atom", Vectors::sse},
    {"Core2", Vectors::sse},         {"Penryn", Vectors::sse},
    {"Dunnington", Vectors::sse},    {"Nehalem", Vectors::sse},
    {"Athlon", Vectors::sse},        {"Opteron", Vectors::sse},
    {"Opteron_SSE3", Vectors::sse},  {"Barcelona", Vectors::sse},
    {"Bobcat", Vectors::sse},        {"Nano", Vectors::sse},
    {"Sandybridge", Vectors::avx},   {"Bulldozer", Vectors::avx},
    {"Piledriver", Vectors::avx},    {"Steamroller", Vectors::avx},
    {"Excavator", Vectors::avx2},    {"Haswell", Vectors::avx2},
    {"Zen", Vectors::avx2},          {"SkylakeX", Vectors::avx512},
    {"Cooperlake", Vectors::avx512}, {"SapphireRapids", Vectors::avx512},
};

/// Best first. Products of float32 are the same for all cores with AVX-512, whose oldest every
/// OpenBLAS that has any knows; and AMD's with AVX2 compute with Haswell's kernels too.
constexpr Core kToAskFor[] = {
    {"SkylakeX", Vectors::avx512}, {"Haswell", Vectors::avx2}, {"Sandybridge", Vectors::avx}};

bool none_set(const os::GetVariable& get, std::initializer_list<const char*> names) {
  return std::none_of(names.begin(), names.end(),
                      [&](const char* name) { return get(name) != nullptr; });
}

}  // namespace

std::optional<Vectors> vectors_of_core(std::string_view core) {
  for (const Core& known : kCores) {
    if (known.name == core) return known.vectors;
  }
  return std::nullopt;
}

std::string better_core(const Cpu& cpu, std::string_view taken, const KnowsCore& knows) {
  const auto now = vectors_of_core(taken);
  if (!cpu.vectors || !now) return "";
  for (const Core& core : kToAskFor) {
    if (core.vectors > *now && core.vectors <= *cpu.vectors && knows(core.name)) {
      return std::string(core.name);
    }
  }
  return "";
}

std::vector<Setting> missing_settings(const Machine& machine, int threads,
                                      const os::GetVariable& get) {
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

std::optional<int> chosen_threads(const os::GetVariable& get) {
  const char* chosen = get("OMP_NUM_THREADS");
  const int threads = chosen == nullptr ? 0 : std::atoi(chosen);
  return threads > 0 ? std::optional(threads) : std::nullopt;
}

std::string to_mark(const std::vector<Setting>& settings) {
  std::string mark;
  for (const Setting& one : settings) {
    if (!mark.empty()) mark += ' ';
    mark += fmt::format("{}={}", one.name, one.value);
    if (!one.instead_of.empty()) mark += fmt::format("/{}", one.instead_of);
  }
  return mark;
}

// What stands there may be anything, since it is a variable that users see: words without a "=" are
// passed over.
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

// What was set once is not set again, so that a program that starts itself anew does so once,
// whatever became of the variable since.
std::vector<Setting> settings_to_start_with(const Machine& machine, int threads,
                                            const os::GetVariable& get) {
  const char* mark = get(kMark);
  auto settings = from_mark(mark == nullptr ? "" : mark);
  if (mark != nullptr && settings.empty()) return {};  // The user's word.
  const auto was_set = [before = settings](const Setting& one) {
    return std::ranges::any_of(before, [&](const Setting& old) { return old.name == one.name; });
  };
  const auto known = settings.size();
  for (const Setting& one : missing_settings(machine, threads, get)) {
    if (!was_set(one)) settings.push_back(one);
  }
  return settings.size() > known ? settings : std::vector<Setting>{};
}

std::vector<std::string> as_variables(const std::vector<Setting>& settings) {
  std::vector<std::string> variables;
  if (settings.empty()) return variables;
  for (const Setting& one : settings) variables.push_back(one.name + "=" + one.value);
  variables.push_back(fmt::format("{}={}", kMark, to_mark(settings)));
  return variables;
}

}  // namespace cohort::kernel
