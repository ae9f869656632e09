#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernel/cpu.h"

namespace cohort {

/// The libraries with matrix kernels that this process has loaded, by what they say of themselves.
/// They are found by their functions' names: which BLAS is in use is the system's choice, not the
/// build's.

/// The core whose kernels OpenBLAS uses; empty where the BLAS is another.
std::string openblas_core();

/// Whether it has kernels for a core of that name.
bool openblas_knows(std::string_view core);

/// oneDNN's instruction set ("avx512_core_bf16"); empty where it is not loaded.
std::string onednn_isa();

/// The vectors of that instruction set; nothing where oneDNN is not loaded.
std::optional<Vectors> onednn_vectors();

}  // namespace cohort
