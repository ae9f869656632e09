#include "kernel/openblas_core.h"

namespace cohort {
namespace {

struct Core {
  std::string_view name;
  Vectors vectors;
};

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

}  // namespace cohort
