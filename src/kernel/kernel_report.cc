#include "kernel/kernel_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace cohort::kernel {
namespace {

const char* or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

/// Those of the mark that hold: a user may have set another value since.
std::vector<Setting> set_by_cohort(const os::GetVariable& get) {
  std::vector<Setting> settings = from_mark(or_empty(get(kMark)));
  std::erase_if(settings,
                [&](const Setting& one) { return one.value != or_empty(get(one.name.c_str())); });
  return settings;
}

bool is_among(const std::vector<Setting>& settings, const std::string& name) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& one) { return one.name == name; });
}

std::string advice_to_set(const std::string& name, const std::string& value) {
  return fmt::format("start with {}={}, or call cohort::use_fast_kernels() first in main", name,
                     value);
}

/// The advice depends on who chose the core: the user, whose word stands; nobody, so that setting
/// the variable helps; or Cohort already, so that only another OpenBLAS does.
std::optional<SlowKernel> slow_openblas(const Machine& machine, const KernelReport& report,
                                        const os::GetVariable& get) {
  const auto vectors = vectors_of_core(machine.openblas_core);
  if (!vectors || !machine.cpu.vectors || *vectors >= *machine.cpu.vectors) return std::nullopt;
  const std::string what =
      fmt::format("OpenBLAS computes with its {} kernels ({}), but this CPU has {}",
                  machine.openblas_core, name_of(*vectors), name_of(*machine.cpu.vectors));
  const char* chosen = get("OPENBLAS_CORETYPE");
  if (chosen != nullptr && !is_among(report.set, "OPENBLAS_CORETYPE")) {
    return SlowKernel{
        what, fmt::format("OPENBLAS_CORETYPE={} is yours, so left alone: unset it", chosen)};
  }
  const std::string core = better_core(machine.cpu, machine.openblas_core, machine.knows_core);
  if (core.empty() || chosen != nullptr) return SlowKernel{what, "install a newer OpenBLAS"};
  return SlowKernel{what, advice_to_set("OPENBLAS_CORETYPE", core)};
}

std::optional<SlowKernel> slow_onednn(const Machine& machine, const OneDnn& onednn,
                                      const os::GetVariable& get) {
  if (!onednn.vectors || !machine.cpu.vectors || *onednn.vectors >= *machine.cpu.vectors) {
    return std::nullopt;
  }
  SlowKernel slow{fmt::format("oneDNN computes with {}, but this CPU has {}", onednn.isa,
                              name_of(*machine.cpu.vectors)),
                  "install a newer oneDNN"};
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (get(name) == nullptr) continue;
    slow.advice = fmt::format("{}={} is yours, so left alone: unset it", name, get(name));
  }
  return slow;
}

std::optional<SlowKernel> slow_waiting(const Machine& machine, int threads,
                                       const os::GetVariable& get) {
  if (!is_among(missing_settings(machine, threads, get), "OMP_WAIT_POLICY")) return std::nullopt;
  return SlowKernel{
      fmt::format("workers have {} threads, and OpenMP's spin where BLAS computes", threads),
      advice_to_set("OMP_WAIT_POLICY", "PASSIVE")};
}

}  // namespace

KernelReport kernel_report(const Machine& machine, const OneDnn& onednn, int threads,
                           const os::GetVariable& get) {
  KernelReport report{.cpu = machine.cpu,
                      .openblas_core = machine.openblas_core,
                      .openblas_by_itself = "",
                      .onednn_isa = onednn.isa,
                      .set = set_by_cohort(get),
                      .slow = {}};
  for (const Setting& one : report.set) {
    if (one.name == "OPENBLAS_CORETYPE") report.openblas_by_itself = one.instead_of;
  }
  for (const auto& slow : {slow_openblas(machine, report, get), slow_onednn(machine, onednn, get),
                           slow_waiting(machine, threads, get)}) {
    if (slow) report.slow.push_back(*slow);
  }
  return report;
}

KernelReport kernel_report(int threads) {
  return kernel_report(this_machine(), {onednn_isa(), onednn_vectors()}, threads,
                       [](const char* name) { return std::getenv(name); });
}

std::string one_line(const KernelReport& report) {
  std::string text = "CPU with ";
  text += report.cpu.vectors ? name_of(*report.cpu.vectors) : "vectors of its own kind";
  if (!report.openblas_core.empty()) text += ", OpenBLAS " + report.openblas_core;
  if (!report.openblas_by_itself.empty()) {
    text += fmt::format(" ({} by itself)", report.openblas_by_itself);
  }
  if (!report.onednn_isa.empty()) text += ", oneDNN " + report.onednn_isa;
  for (const Setting& one : report.set) {
    if (one.instead_of.empty()) text += fmt::format(", {}={}", one.name, one.value);
  }
  for (const SlowKernel& slow : report.slow) text += fmt::format("; SLOW: {}", slow.what);
  return text;
}

nlohmann::ordered_json to_json(const KernelReport& report) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json set = Json::object();
  for (const Setting& one : report.set) set[one.name] = one.value;
  Json slow = Json::array();
  for (const SlowKernel& one : report.slow) slow.push_back(one.what);
  return {{"cpu_vectors", or_null(report.cpu.vectors ? name_of(*report.cpu.vectors) : "")},
          {"openblas_core", or_null(report.openblas_core)},
          {"openblas_core_by_itself", or_null(report.openblas_by_itself)},
          {"onednn_isa", or_null(report.onednn_isa)},
          {"set_by_cohort", set},
          {"slow", slow}};
}

}  // namespace cohort::kernel
