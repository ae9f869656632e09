#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/fail.h"
#include "cli/command.h"
#include "programs/guard.h"
#include "programs/program_run.h"

namespace cohort::cli {
namespace {

/// The words of `cohort run`.
struct RunWords {
  programs::ProgramRun run;
  int host = -1;  ///< -1: not given.
  bool no_prefix = false;
  const CLI::App* app = nullptr;  ///< With the options above.
};

constexpr const char* kRunFooter =
    R"(All words after the options are the program's: cohort run [OPTIONS] PROGRAM [ITS WORDS…]
It finds its place in the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR, MASTER_PORT, …); cohort::join() reads them.
When a rank fails the others are ended within seconds, and the exit code is that of the first cause.
docs/cohort-run.md has the rest.
Examples:
  cohort run -n 4 ./program --its-option
  cohort run -n 2 --max-restarts 3 --log-dir logs python3 program.py
  cohort run -n 4 --nnodes 2 --node-rank 0 --master-addr HOST --master-port 29500 ./program)";

/// With dashes, as all options here, and with underscores, as torchrun has them.
std::string both(const std::string& name) {
  std::string other = name;
  for (std::size_t i = 2; i < other.size(); ++i) {
    if (other[i] == '-') other[i] = '_';
  }
  return name + "," + other;
}

void configure_run(CLI::App& app, RunWords& words) {
  programs::ProgramRun& run = words.run;
  app.add_option("-n," + both("--nproc-per-node"), run.ranks_per_host,
                 "How many ranks to start on this host; 1");
  app.add_option("--nnodes", run.hosts,
                 "How many hosts there are, each with its own cohort run; 1");
  app.add_option(both("--node-rank"), words.host, "Which of them this is, from 0");
  app.add_option(both("--master-addr"), run.master_address, "The host of rank 0")
      ->type_name("HOST");
  app.add_option(both("--master-port"), run.master_port, "A free port of it")->type_name("PORT");
  app.add_option(both("--max-restarts"), run.max_restarts,
                 "How often all ranks are started again after a failure; 0");
  app.add_option(both("--log-dir"), run.logs,
                 "Keep what each rank writes in files below this folder")
      ->type_name("DIR");
  app.add_option(both("--run-id") + "," + both("--rdzv-id"), run.run_id,
                 "The name of the run, the same on all hosts")
      ->type_name("NAME");
  app.add_flag("--insecure", run.insecure, "What goes between hosts may be seen there");
  app.add_flag(both("--no-prefix"), words.no_prefix, "Lines do not begin with [rank R]");
  app.footer(kRunFooter);
  words.app = &app;
}

bool takes_the_next_word(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

/// The program is the first word that is neither an option nor its value, or what comes after "--".
/// Nothing after it is ours, whatever it looks like, so the parser shall not see it.
void cut_program(std::vector<std::string>& words, RunWords& into) {
  std::size_t at = 1;  // After "run".
  while (at < words.size() && words[at].starts_with("-") && words[at] != "--") {
    at += takes_the_next_word(*into.app, words[at]) ? 2 : 1;
  }
  at = std::min(at, words.size());
  const auto program = words.begin() + static_cast<std::ptrdiff_t>(at);
  const bool marked = program != words.end() && *program == "--";
  into.run.command.assign(program + (marked ? 1 : 0), words.end());
  words.erase(program, words.end());
}

int run_run(const RunWords& words) {
  programs::ProgramRun run = words.run;
  run.prefix = !words.no_prefix;
  if (words.host < 0 && run.hosts > 1) {
    fail(ErrorCode::invalid,
         "with --nnodes {} every host needs its own --node-rank, from 0 to {}; rank 0 is on host 0",
         run.hosts, run.hosts - 1);
  }
  run.host = std::max(words.host, 0);
  run = complete(std::move(run), [](const char* name) { return std::getenv(name); });
  return programs::run_guarded([&] { return explained([&] { return run_ranks(run); }); });
}

}  // namespace

Command run_command() {
  const auto words = std::make_shared<RunWords>();
  return {"run", "Start a program of your own as several ranks, as torchrun does",
          [words](CLI::App& app) { configure_run(app, *words); },
          [words] { return run_run(*words); },
          [words](std::vector<std::string>& all) { cut_program(all, *words); }};
}

}  // namespace cohort::cli
