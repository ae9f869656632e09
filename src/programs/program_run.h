#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "os/this_process.h"
#include "programs/ending.h"

namespace cohort::programs {

/// A user's own program, to be started as several ranks: on this host all of them, or the part of one
/// host of several, each of which has a launcher of its own.
struct ProgramRun {
  std::vector<std::string> command;  ///< The program's name and its arguments.
  int ranks_per_host = 1;
  int hosts = 1;
  int host = 0;                     ///< Which of them this is.
  std::string master_address = {};  ///< Of the host of rank 0; empty: this host.
  int master_port = 0;              ///< 0: a free one of this host, a new one with every restart.
  int max_restarts = 0;             ///< How often all ranks are started again after a failure.
  std::string run_id = {};          ///< The same on all hosts; empty: see complete().
  std::filesystem::path logs = {};  ///< Where what each rank writes is kept; empty: nowhere.
  bool prefix = true;               ///< Each line says whose it is.
  bool insecure = false;            ///< What goes between hosts may be seen there.
  Patience patience = {};
};

/// The run as it will be started: what was left open is filled in, the program is found. On one host
/// the run's name is drawn, and nobody else has it; of several hosts all come to the same one,
/// which follows from the port.
///
/// Throws Error, before anything is started, where the ranks could not find each other or must not
/// talk to each other (cluster::check_trust), a number makes no sense, or there is no such program.
ProgramRun complete(ProgramRun run, const os::GetVariable& get);

/// The file of the program `name`, as execvp() finds it: on PATH, or where it stands if it has a
/// slash. Throws Error: not_found, or invalid where it is there and cannot be executed.
std::string find_program(const std::string& name, const os::GetVariable& get);

/// Starts the ranks of this host and stays until they have ended; where one fails, ends the others,
/// and where there are restarts left, starts all again. What they write is passed on (Output), and
/// so are SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2. `run` is complete (see complete()).
///
/// Returns 0 where all ended well, or the exit code of the first cause (first_cause.h), which was said
/// on standard error before. After SIGINT, SIGTERM or SIGHUP nothing is started again. A launcher
/// that nobody reads from ends the ranks as after a failure, and returns 128 + SIGPIPE.
///
/// Ends all children of this process and what comes from them: call it as the body of run_guarded().
/// Throws Error where ranks cannot be started; then none runs on.
int run_ranks(const ProgramRun& run);

}  // namespace cohort::programs
