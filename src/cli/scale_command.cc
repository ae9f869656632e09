#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "base/fail.h"
#include "cli/command.h"
#include "launch/requests.h"

namespace cohort::cli {
namespace {

/// For the launcher's answer, not for the change: that comes after the step the workers are at.
constexpr auto kPatience = std::chrono::seconds(10);

/// The words of `cohort scale`.
struct ScaleWords {
  std::string run_dir;
  std::optional<int> workers;
};

void configure_scale(CLI::App& app, ScaleWords& words) {
  app.add_option("RUN", words.run_dir, "The folder of a run that is going on");
  app.add_option("--workers", words.workers, "How many workers it shall have from now on");
  app.footer(
      "The workers pause after their step and go on together; every sample of the epoch is still\n"
      "seen once, and a learning rate that depends on the number of workers follows.\n"
      "Example:\n  cohort scale runs/mnist-20261116-120000 --workers 4");
}

/// Asks the launcher of the run by a file in its folder and prints what it answers
/// (launch/requests.h).
int run_scale(const ScaleWords& words) {
  if (words.run_dir.empty() || !words.workers) {
    fail(ErrorCode::invalid,
         "scale needs the folder of a run and a number, as in: cohort scale runs/mine --workers 4");
  }
  const std::string answer =
      launch::ask_for_workers(words.run_dir, *words.workers, Deadline::in(kPatience));
  if (answer.starts_with("refused")) fail(ErrorCode::invalid, "{}", answer);
  fmt::print("{}\n", answer);
  return 0;
}

}  // namespace

Command scale_command() {
  const auto words = std::make_shared<ScaleWords>();
  return {"scale", "Change the number of workers of a run that is going on",
          [words](CLI::App& app) { configure_scale(app, *words); },
          [words] { return run_scale(*words); }};
}

}  // namespace cohort::cli
