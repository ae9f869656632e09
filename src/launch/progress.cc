#include "launch/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

std::string grouped(double number) {
  return fmt::format("{:.0f}", number);
}

std::string as_time(double seconds) {
  const auto whole = static_cast<long>(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string stale(double staleness) {
  return staleness < 0 ? "" : fmt::format("  staleness {:.0f}", staleness);
}

}  // namespace

// Four styles, picked once. `quiet` says nothing at all; `json` is a line of JSON for everything
// that is said, so that a program can read all of it; on a `terminal` one line is drawn over and
// over (open_line_: the cursor still stands in it), and whatever else is said goes below it;
// `plain` is for files and pipes, where lines come seldom and stay.
Progress::Progress(const RunOptions& options, const ControlBlock& control, int workers)
    : control_(control), workers_(workers) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  style_ = options.quiet      ? Style::quiet
           : options.json_log ? Style::json
           : terminal         ? Style::terminal
                              : Style::plain;
}

void Progress::say(const std::string& text) {
  if (style_ == Style::quiet) return;
  finish();
  if (style_ == Style::json) {
    using Json = nlohmann::json;
    const Json line{{"message", text}};  // It may quote what is not UTF-8.
    std::puts(line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::puts(text.c_str());
  }
  std::fflush(stdout);
}

// The launcher calls it in every round of its loop. A line comes only when the chief has made a
// step since the last one, and not too often.
void Progress::tick(std::size_t live_workers) {
  const WorkerCard& chief = control_.card(control_.chief());
  const std::int64_t step = chief.step.load();
  if (style_ == Style::quiet || Clock::now() < next_ || step == shown_step_ || step == 0) return;
  shown_step_ = step;
  next_ = Clock::now() + (style_ == Style::terminal ? Duration(100ms) : Duration(2s));
  show(style_ == Style::json ? json(live_workers) : line(live_workers));
}

void Progress::show(const std::string& text) {
  if (style_ == Style::terminal) {
    // Back to the line's start; what the last, longer line left behind it is erased.
    std::fprintf(stdout, "\r%s\033[K", text.c_str());
    open_line_ = true;
  } else {
    std::puts(text.c_str());
  }
  std::fflush(stdout);
}

// The time that is left is that of the steps of this run so far: those of a run that it goes on
// from are in `step`, and not in `done`.
std::string Progress::line(std::size_t live_workers) const {
  const WorkerCard& chief = control_.card(control_.chief());
  const auto step = static_cast<double>(chief.step.load());
  const auto total = static_cast<double>(control_.total_steps());
  const auto done = step - static_cast<double>(control_.first_step());
  const double eta = done > 0 ? seconds_since(start_) / done * (total - step) : 0;
  return fmt::format(
      "epoch {:.2f}  step {:.0f}/{:.0f}  loss {:.4f}  {} samples/s  ETA {}  {}/{} workers{}{}",
      chief.epoch.load(), step, total, chief.loss.load(), grouped(chief.samples_per_second.load()),
      as_time(eta), live_workers, workers_, stale(chief.staleness.load()),
      chief.state.load() == TaskState::validating ? "  validating" : "");
}

std::string Progress::json(std::size_t live_workers) const {
  const WorkerCard& chief = control_.card(control_.chief());
  const double staleness = chief.staleness.load();
  return nlohmann::ordered_json{{"step", chief.step.load()},
                                {"total_steps", control_.total_steps()},
                                {"epoch", chief.epoch.load()},
                                {"loss", chief.loss.load()},
                                {"samples_per_second", chief.samples_per_second.load()},
                                {"live_workers", live_workers},
                                {"staleness", staleness < 0 ? nlohmann::ordered_json(nullptr)
                                                            : nlohmann::ordered_json(staleness)}}
      .dump();
}

void Progress::finish() {
  if (open_line_) std::puts("");
  open_line_ = false;
}

}  // namespace cohort::launch
