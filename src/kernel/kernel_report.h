#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernel/fast_settings.h"

namespace cohort::kernel {

/// What a process computes with, said three ways: to users in a line, to files as JSON, and with
/// advice where something is slower than it could be. Nothing is changed here.

/// What computes more slowly than it could, and what to do about it, each a part of a sentence.
struct SlowKernel {
  std::string what;
  std::string advice;
};

/// What a process computes with: for its users to see, and for whoever reads figures later.
struct KernelReport {
  Cpu cpu;
  std::string openblas_core;       ///< Empty where the BLAS is another.
  std::string openblas_by_itself;  ///< The core it would have taken; empty where it did.
  std::string onednn_isa;          ///< Empty where oneDNN is not loaded.
  std::vector<Setting> set;        ///< By Cohort, for this process.
  std::vector<SlowKernel> slow;
};

/// What oneDNN says of itself; both empty where it is not loaded.
struct OneDnn {
  std::string isa;
  std::optional<Vectors> vectors;
};

/// Of any process, given what its libraries say and how many threads each worker computes with.
KernelReport kernel_report(const Machine& machine, const OneDnn& onednn, int threads,
                           const os::GetVariable& get);

/// Of this process, whose workers compute with `threads` each; 0: not known yet.
KernelReport kernel_report(int threads = 0);

/// "OpenBLAS SkylakeX (Prescott by itself), oneDNN avx512_core, OMP_WAIT_POLICY=PASSIVE"
std::string one_line(const KernelReport& report);

/// For env.json and the figures of benchmarks.
nlohmann::ordered_json to_json(const KernelReport& report);

}  // namespace cohort::kernel
