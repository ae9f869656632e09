#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/machine.h"
#include "os/this_process.h"

namespace cohort::kernel {

/// Some of what decides how fast a program computes is read from its environment when its libraries
/// are loaded, before main. Here is which variables a process should have been started with; who
/// starts it anew with them is kernel/program_start.h. All of it is pure: functions are given the
/// machine and the environment.

/// A variable that Cohort sets.
struct Setting {
  std::string name;
  std::string value;
  std::string instead_of;  ///< What the library takes by itself, where that is known.

  bool operator==(const Setting&) const = default;
};

/// The vectors that the kernels of a core of OpenBLAS use; nothing for a name that is not of an x86
/// core.
std::optional<Vectors> vectors_of_core(std::string_view core);

/// The core to ask for on `cpu` (OPENBLAS_CORETYPE) where OpenBLAS took `taken` by itself: the best
/// that this OpenBLAS knows and the CPU can compute. Empty where `taken` is as good, or unknown.
///
/// OpenBLAS takes the core of the CPU it knows by its model number. A CPU that is newer than itself
/// it takes for the oldest it has: 0.3.21 computes on a Xeon of model 207 with the SSE kernels of
/// "Prescott", at a third of the speed.
std::string better_core(const Cpu& cpu, std::string_view taken, const KnowsCore& knows);

/// What its environment lacks. Nothing that the user has set is in it, whatever the value.
/// - OPENBLAS_CORETYPE, where OpenBLAS took kernels below what the CPU can compute;
/// - OMP_WAIT_POLICY, where a process computes with several `threads`: OpenMP's spin while they
///   have nothing to do, on the cores that OpenBLAS' threads compute on.
std::vector<Setting> missing_settings(const Machine& machine, int threads,
                                      const os::GetVariable& get);

/// The threads that the user chose by OMP_NUM_THREADS.
std::optional<int> chosen_threads(const os::GetVariable& get);

/// The mark: the variable in which a process finds what was set for it, or for one it comes from,
/// so that it is not started anew for the same another time. A user who sets it to anything that is
/// no settings ("off") forbids that a program is started anew at all.
inline constexpr const char* kMark = "COHORT_KERNELS";

/// The mark's value for `settings`: NAME=VALUE or NAME=VALUE/INSTEAD_OF each, separated by spaces;
/// and what such a value says. Words that are no settings are passed over.
std::string to_mark(const std::vector<Setting>& settings);
std::vector<Setting> from_mark(const std::string& mark);

/// What a program is to be started with: what was set for this process, as its mark says, and what
/// is missing besides. Empty where nothing is missing, or the user has forbidden it.
std::vector<Setting> settings_to_start_with(const Machine& machine, int threads,
                                            const os::GetVariable& get);

/// "NAME=VALUE" of each, and of their mark; none where there are no settings.
std::vector<std::string> as_variables(const std::vector<Setting>& settings);

}  // namespace cohort::kernel
