#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/cpu.h"

namespace cohort {

/// OpenBLAS has kernels for many CPUs, which it calls cores, and takes those of the CPU it knows by
/// its model number. One that is newer than itself it takes for the oldest it has: 0.3.21 computes
/// on a Xeon of model 207 with the SSE kernels of "Prescott", at a third of the speed.

/// The vectors that a core's kernels use; nothing for a name that is not of an x86 core.
std::optional<Vectors> vectors_of_core(std::string_view core);

/// Whether an OpenBLAS has kernels for a core of that name.
using KnowsCore = std::function<bool(std::string_view core)>;

/// The core to ask for on `cpu` (OPENBLAS_CORETYPE) where OpenBLAS took `taken` by itself: the best
/// that this OpenBLAS knows and the CPU can compute. Empty where `taken` is as good, or unknown.
std::string better_core(const Cpu& cpu, std::string_view taken, const KnowsCore& knows);

}  // namespace cohort
