#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>

namespace cohort {

/// One word after `cohort`. `configure` declares its options, `run` does the work once they are
/// parsed and returns the exit code; it may throw Error, main() turns that into a sentence.
struct Command {
  std::string name;
  std::string summary;
  std::function<void(CLI::App&)> configure;
  std::function<int()> run;
};

Command train_command();
Command score_command();
Command data_command();
Command scale_command();
Command chaos_command();
Command doctor_command();
Command bench_command();

}  // namespace cohort
