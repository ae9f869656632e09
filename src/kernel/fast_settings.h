#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/get_variable.h"
#include "kernel/cpu.h"
#include "kernel/openblas_core.h"

namespace cohort {

/// Some of what decides how fast a program computes is read from its environment when its libraries
/// are loaded, before main. Here is which variables a process should have been started with.

struct Setting {
  std::string name;
  std::string value;
  std::string instead_of;  ///< What the library takes by itself, where that is known.

  bool operator==(const Setting&) const = default;
};

/// What the choice depends on.
struct Machine {
  Cpu cpu;
  std::string openblas_core;  ///< In use now; empty where the BLAS is another.
  KnowsCore knows_core;
};

/// This process's.
Machine this_machine();

/// What its environment lacks. Nothing that the user has set is in it, whatever the value.
/// - OPENBLAS_CORETYPE, where OpenBLAS took kernels below what the CPU can compute;
/// - OMP_WAIT_POLICY, where a process computes with several `threads`: OpenMP's spin while they
///   have nothing to do, on the cores that OpenBLAS' threads compute on.
std::vector<Setting> missing_settings(const Machine& machine, int threads, const GetVariable& get);

/// The threads that the user chose by OMP_NUM_THREADS.
std::optional<int> chosen_threads(const GetVariable& get);

/// The variable in which a process finds what was set for it or for one it comes from, so that it
/// is not started anew for the same another time. A user who sets it, to anything else, forbids
/// that.
inline constexpr const char* kMark = "COHORT_KERNELS";

/// The mark's value for `settings`, and what such a value says. Words that are no settings are
/// passed over.
std::string to_mark(const std::vector<Setting>& settings);
std::vector<Setting> from_mark(const std::string& mark);

}  // namespace cohort
