#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>
#include <vector>

namespace cohort::cli {

/// The words after `cohort`. Each has a file of its own with one function that makes it, and
/// main.cc puts them together:
///
///   main()  ->  all_commands()  ->  configure() of every command, so that --help knows all of them
///           ->  CLI11 parses the words into the variables that configure() has named
///           ->  run() of the one command that was called  ->  exit code
///
/// The variables that the options are parsed into belong to the command: configure() and run()
/// share one object by a shared_ptr. Everything happens on the main thread, once.
///
/// A command only turns words into a call of a lower room. What is wrong with them is an Error:
/// main() prints it as one line, "cohort: …", and exits with the code that cluster/exit_code.h has for
/// its kind.
struct Command {
  std::string name;                          ///< The word itself.
  std::string summary;                       ///< One line of `cohort --help`.
  std::function<void(CLI::App&)> configure;  ///< Declares its options; `app` outlives run().
  std::function<int()> run;                  ///< Once they are parsed; returns the exit code.
  /// Takes out of all words, before they are parsed, those that are not meant for us. May be empty.
  std::function<void(std::vector<std::string>& words)> cut = {};
};

/// Declares `--set KEY=VALUE`, which may be repeated, has one value each time (so that a job file
/// may follow), and is understood as load_job() does.
void add_set_option(CLI::App& app, std::vector<std::string>& overrides, const std::string& help);

/// Runs what a process is there for: every error becomes one line on standard error and an exit code.
int explained(const std::function<int()>& work);

/// Trains the model of a job file, or prints the job or all keys: load_job(), check_job(), train().
Command train_command();
/// Starts a program of the user's own as several ranks: programs/.
Command run_command();
/// Lets the model of a run predict: score/.
Command score_command();
/// Fetches the data of the examples: data/sources/.
Command data_command();
/// Changes the number of workers of a run that goes on in another process: launch/requests.h.
Command scale_command();
/// Trains under seeded faults: chaos/. It starts this program as `cohort train`.
Command chaos_command();
/// Says whether this machine has what training needs; does nothing else.
Command doctor_command();
/// Measures Cohort beside its peers, or strategies beside each other: bench/. It starts this
/// program as `cohort bench worker`.
Command bench_command();

}  // namespace cohort::cli
