#include "kernel/machine.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include "base/fail.h"
#include "base/files.h"

namespace cohort::kernel {
namespace {

/// The value of the first line "key : value" of /proc/cpuinfo.
std::string value_of(std::string_view cpuinfo, std::string_view key) {
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1);
    if (name == key) return line.substr(colon + 2);
  }
  return "";
}

bool has_all(const std::set<std::string>& flags, std::span<const char* const> wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const char* flag) { return flags.contains(flag); });
}

// What OpenBLAS' kernels for Sandybridge, Haswell and SkylakeX make use of.
constexpr std::array kAvx = {"avx"};
constexpr std::array kAvx2 = {"avx2", "fma"};
constexpr std::array kAvx512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"};

std::optional<Vectors> vectors_of(const std::string& words) {
  std::istringstream stream(words);
  const std::set<std::string> flags{std::istream_iterator<std::string>(stream), {}};
  if (flags.empty()) return std::nullopt;
  if (has_all(flags, kAvx2) && has_all(flags, kAvx512)) return Vectors::avx512;
  if (has_all(flags, kAvx2)) return Vectors::avx2;
  return has_all(flags, kAvx) ? Vectors::avx : Vectors::sse;
}

/// A function of whichever library of this process has it; null where none has.
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

/// OpenBLAS keeps the kernels of each core in a table of its own.
bool has_table(std::string_view core) {
  std::string name = "gotoblas_" + std::string(core);
  std::transform(name.begin() + 9, name.end(), name.begin() + 9,
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return ::dlsym(RTLD_DEFAULT, name.c_str()) != nullptr;
}

/// oneDNN's number of its instruction set: a bit for each that it includes.
std::optional<unsigned> effective_isa() {
  auto* isa = find<unsigned()>("dnnl_get_effective_cpu_isa");
  if (isa == nullptr) return std::nullopt;
  return isa();
}

}  // namespace

const char* name_of(Vectors vectors) {
  constexpr std::array kNames = {"SSE", "AVX", "AVX2", "AVX-512"};
  return kNames[static_cast<std::size_t>(vectors)];
}

Cpu cpu_of(std::string_view cpuinfo) {
  const std::string name = value_of(cpuinfo, "model name");
  return {name.empty() ? "unknown" : name, vectors_of(value_of(cpuinfo, "flags"))};
}

Cpu this_cpu() {
  try {
    return cpu_of(read_kernel_file("/proc/cpuinfo"));
  } catch (const Error&) {
    return cpu_of("");
  }
}

// The libraries are asked by the functions that they happen to have: which BLAS is loaded is the
// system's choice, and a build of another one has none of these. Then nothing is known, and nothing
// is changed.
std::string openblas_core() {
  auto* name = find<const char*()>("openblas_get_corename");
  return name == nullptr ? "" : name();
}

bool openblas_knows(std::string_view core) {
  // A build that shows not even the table in use hides them all: then the name is worth trying,
  // since OpenBLAS passes over one that it does not know.
  return has_table(core) || !has_table(openblas_core());
}

std::string onednn_isa() {
  const auto isa = effective_isa();
  auto* name = find<const char*(unsigned)>("dnnl_cpu_isa2str");
  if (!isa || name == nullptr) return "";
  const std::string text = name(*isa);
  constexpr std::string_view kPrefix = "cpu_isa_";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

std::optional<Vectors> onednn_vectors() {
  const auto isa = effective_isa();
  if (!isa) return std::nullopt;
  const auto includes = [&](unsigned bits) { return (*isa & bits) == bits; };
  // The bits of oneDNN's dnnl_cpu_isa_t.
  if (includes(0x27)) return Vectors::avx512;  // avx512_core
  if (includes(0x7)) return Vectors::avx2;
  return includes(0x3) ? Vectors::avx : Vectors::sse;
}

Machine this_machine() {
  return {this_cpu(), openblas_core(), openblas_knows};
}

}  // namespace cohort::kernel
