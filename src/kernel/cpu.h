#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cohort {

/// The widest vectors that a CPU computes with, or that the kernels of a library are written for.
enum class Vectors { sse, avx, avx2, avx512 };

/// "AVX-512" and so on, as users know them.
const char* name_of(Vectors vectors);

struct Cpu {
  std::string name;                ///< As its maker calls it; "unknown" where the kernel does not.
  std::optional<Vectors> vectors;  ///< Nothing where it is of another kind than x86-64.
};

/// What the text of /proc/cpuinfo says of the first CPU. Its flags are those that the kernel lets
/// programs use, so a CPU whose AVX-512 was switched off has none.
Cpu cpu_of(std::string_view cpuinfo);

/// The one this process runs on.
Cpu this_cpu();

}  // namespace cohort
