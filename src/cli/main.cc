#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/names.h"
#include "cli/command.h"
#include "cluster/exit_code.h"

namespace cohort::cli {
namespace {

// Exit codes of the program: 0, what a command returns, or by kind of error
//
//   1     failed (kExitFailed)
//   2     wrong words, a wrong job file or a wrong input (kExitWrongUse)
//   138   trying again may help (kExitRetry)
//
// Everything that is not an answer goes to standard error, in one line that begins with "cohort: ".

/// In the order in which --help lists them.
std::vector<Command> all_commands() {
  return {train_command(), run_command(),   score_command(),  data_command(),
          scale_command(), chaos_command(), doctor_command(), bench_command()};
}

constexpr const char* kMainFooter = R"(Examples:
  cohort train examples/blobs.toml              train in a few seconds, no data needed
  cohort data mnist                             fetch the handwritten digits
  cohort train examples/mnist.toml --workers 2  train on them with two processes
  cohort run -n 4 ./program                     start a program of your own as four ranks
  cohort score runs/mine --input new.csv        let the model of a run predict
  cohort help train                             everything a command can do
  cohort doctor                                 does this machine have what it takes?

Every key of a job file is in docs/job.md, and printed by: cohort train --keys)";

/// One line of bearable length, whatever a library put into its message.
void print_error(std::string_view message) {
  constexpr std::size_t kLongest = 4000;
  fmt::print(stderr, "cohort: {}\n", excerpt(message, kLongest));
}

/// People type it without the dashes, too: `cohort help` is `cohort --help`, `cohort help train` is
/// `cohort train --help`.
std::vector<std::string> normalized(std::vector<std::string> words) {
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

/// CLI11 would only say that a word was not expected; here the nearest command is named.
void check_command_name(const std::vector<std::string>& words,
                        const std::vector<Command>& commands) {
  if (words.empty() || words[0].starts_with("-")) return;
  std::vector<std::string> names = {"help"};
  for (const Command& command : commands) names.push_back(command.name);
  check_known("the command", words[0], names);
}

/// CLI11 says which word it did not expect; the option it may stand for is more help.
std::string unexpected_words(const CLI::App& command) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::vector<std::string> words = command.remaining();
  const std::string word = words.empty() ? "" : words.front().substr(0, words.front().find('='));
  const std::string nearest = word.starts_with("-") ? nearest_name(word, known) : "";
  const std::string hint = nearest.empty() ? fmt::format("see cohort {} --help", command.get_name())
                                           : fmt::format("did you mean {}?", nearest);
  return fmt::format("{} does not know \"{}\"; {}", command.get_name(), word, hint);
}

/// CLI11's own answer to --help and --version; one line about any other word it could not use.
int report(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const auto chosen = app.get_subcommands();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !chosen.empty()) {
    print_error(unexpected_words(*chosen.front()));
  } else {
    print_error(error.what());
  }
  return cluster::kExitWrongUse;
}

/// The exit code of the command in `words`, the words after the program's own name.
int run_words(std::vector<std::string> words) {
  CLI::App app{"Cohort trains one model on many processes, on LibTorch.", "cohort"};
  app.set_version_flag("--version", "cohort " COHORT_VERSION, "Print the version");
  app.footer(kMainFooter);
  const std::vector<Command> commands = all_commands();
  for (const Command& command : commands) {
    command.configure(*app.add_subcommand(command.name, command.summary));
  }
  if (words.empty()) {
    fmt::print(stderr, "{}", app.help());
    return cluster::kExitWrongUse;
  }
  words = normalized(std::move(words));
  check_command_name(words, commands);
  for (const Command& command : commands) {
    if (command.name == words[0] && command.cut) command.cut(words);
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes them last first.
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return report(app, error);
  }
  for (const Command& command : commands) {
    if (app.got_subcommand(command.name)) return command.run();
  }
  return cluster::kExitWrongUse;  // Only options, and none that prints something.
}

}  // namespace

// The last place where anything is caught. Errors of LibTorch come with a backtrace, which is left
// out.
int explained(const std::function<int()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    print_error(error.what());
    return cluster::exit_code(error.code());
  } catch (const c10::Error& error) {
    print_error(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    print_error("there is not enough memory for this");
  } catch (const std::exception& error) {
    print_error(error.what());
  } catch (...) {
    print_error("stopped by an error of unknown kind");
  }
  return cluster::kExitFailed;
}

void add_set_option(CLI::App& app, std::vector<std::string>& overrides, const std::string& help) {
  app.add_option("--set", overrides, help)
      ->type_size(1)
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

}  // namespace cohort::cli

int main(int argc, char** argv) {
  return cohort::cli::explained(
      [&] { return cohort::cli::run_words(std::vector<std::string>(argv + 1, argv + argc)); });
}
