#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::kernel {

/// What this process computes with: the CPU, by what the kernel says of it, and the libraries with
/// matrix kernels that are loaded, by what they say of themselves. Nothing here changes anything.

/// The widest vectors that a CPU computes with, or that the kernels of a library are written for.
/// Later ones include the earlier.
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

/// The one this process runs on; unknown where /proc cannot be read.
Cpu this_cpu();

/// The libraries are found by their functions' names (dlsym): which BLAS is in use is the system's
/// choice, not the build's, and another one than OpenBLAS is no error.

/// The core whose kernels OpenBLAS uses; empty where the BLAS is another. OpenBLAS has kernels for
/// many CPUs, each set of which it calls a core.
std::string openblas_core();

/// Whether it has kernels for a core of that name, or may have.
bool openblas_knows(std::string_view core);

/// oneDNN's instruction set ("avx512_core_bf16"); empty where it is not loaded.
std::string onednn_isa();

/// The vectors of that instruction set; nothing where oneDNN is not loaded.
std::optional<Vectors> onednn_vectors();

/// Whether an OpenBLAS has kernels for a core of that name.
using KnowsCore = std::function<bool(std::string_view core)>;

/// What the choice of settings depends on (fast_settings.h); tests make machines of their own.
struct Machine {
  Cpu cpu;
  std::string openblas_core;  ///< In use now; empty where the BLAS is another.
  KnowsCore knows_core;
};

/// This process's.
Machine this_machine();

}  // namespace cohort::kernel
