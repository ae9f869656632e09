#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/program_group.h"
#include "kernel/fast_settings.h"

namespace cohort::bench {

/// Where `cohort bench` finds the programs it runs, and with which settings.
///
///   setting        cohort_worker()    as installed       tuned
///   threads        1               1                  1
///   cores          one a worker    one a worker       one a worker    (gRPC as installed: all)
///   kernels        Cohort's        the library's own  Cohort's
///   malloc         keeps blocks    as it is           keeps blocks
///   TCP            as it is        as it is           reno, in a network of its own
///
/// The first column is what Cohort gives itself. The last gives a peer all of that, and those that
/// talk by TCP one that is faster on loopback than what many machines have.

/// How a peer is run: as its packages install it, or with every setting Cohort gives itself.
struct PeerSetting {
  std::string suffix;  ///< Of its label.
  ProgramVariables environment;
  bool private_network = false;

  bool is_tuned() const { return !suffix.empty(); }
};

/// Both are bound to one core per worker and have one thread. The tuned one keeps large blocks of
/// memory instead of asking for fresh pages each step, has TCP reno where it can, and the kernels
/// that Cohort has: what Cohort set for this process (kernel/fast_settings.h) the other does not
/// get.
const PeerSetting& as_installed();
PeerSetting as_installed(const std::vector<kernel::Setting>& set_by_cohort);
const PeerSetting& tuned();

/// The path of a program of bench/, or nothing where it was not built.
std::optional<std::string> peer_program(const std::string& name);

/// An interpreter that can run bench/ddp_train.py.
struct Python {
  std::string path;
  std::string torch;  ///< The version of its PyTorch.
};

/// A Python that has PyTorch: the one at `wanted`, or where that is empty the system's. Throws
/// Error(invalid) where the wanted one has none.
std::optional<Python> python_with_torch(const std::string& wanted = "");

/// `program` as `ranks` processes under mpirun, which must be in PATH. It may be run by root, and
/// have more ranks than cores.
Program under_mpirun(int ranks, const std::string& program, const std::vector<std::string>& words);

/// `program` as `ranks` ranks of this command's `cohort run`.
Program cohort_run(int ranks, const std::string& program, const std::vector<std::string>& words);

/// This command as `cohort bench worker WORDS...`.
Program cohort_worker(const std::vector<std::string>& words);

/// Words said one after the other.
std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second);

/// A TCP port of the loopback nobody uses now. It is not held: somebody may take it before it is
/// used.
int free_port();

}  // namespace cohort::bench
