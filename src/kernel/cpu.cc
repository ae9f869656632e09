#include "kernel/cpu.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include "base/fail.h"
#include "base/files.h"

namespace cohort {
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

}  // namespace cohort
