#include "launch/stragglers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto kStall = 10s;

/// The first steps touch memory for the first time and say little of a worker's speed.
constexpr std::int64_t kSteadyStep = 20;

constexpr double kSlow = 2;

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

struct Wait {
  std::int64_t since = 0;  ///< 0: it does not wait.
  WaitFor what = WaitFor::nothing;
  int index = -1;
  std::int64_t step = 0;

  bool waits() const { return what != WaitFor::nothing; }
};

// A card is read while its worker writes it. `waiting` is stored last where a wait begins, and the
// rest is only words for people: a step or an index of a moment before does no harm.
Wait wait_of(const WorkerCard& card) {
  Wait wait;
  wait.what = card.activity.waiting.load(std::memory_order_acquire);
  if (wait.waits()) wait.since = card.activity.since.load(std::memory_order_relaxed);
  wait.index = card.activity.index.load(std::memory_order_relaxed);
  wait.step = card.step.load(std::memory_order_relaxed);
  return wait;
}

/// Those that do not wait themselves; where all wait, those that are furthest behind.
std::vector<int> awaited_ranks(const std::vector<Wait>& waits) {
  std::vector<int> ranks;
  const std::int64_t behind = std::ranges::min(waits, {}, &Wait::step).step;
  const bool all_wait = std::ranges::all_of(waits, &Wait::waits);
  for (std::size_t rank = 0; rank < waits.size(); ++rank) {
    const bool awaited = all_wait ? waits[rank].step == behind : !waits[rank].waits();
    if (awaited) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

/// What those who are waited for are at, as far as they say it.
std::string busy_with(const ControlBlock& control, const cluster::View& view,
                      const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    const int worker = view.workers[static_cast<std::size_t>(rank)];
    const BusyWith what = control.card(worker).activity.working.load(std::memory_order_acquire);
    if (what != BusyWith::nothing) text += fmt::format("; rank {} is {}", rank, words_of(what));
  }
  return text;
}

}  // namespace

// The longest wait stands for all: the others most often wait for the same worker, some of them
// because that one holds up whom they wait for. It is named by when it began, so that one and the
// same wait is told of again only every ten seconds, and a new one as soon as it is long enough.
std::optional<std::string> StallReport::look(const ControlBlock& control, const cluster::View& view,
                                             Clock::time_point now) {
  std::vector<Wait> waits;
  for (const int worker : view.workers) waits.push_back(wait_of(control.card(worker)));
  Wait longest;
  for (const Wait& wait : waits) {
    if (wait.waits() && (!longest.waits() || wait.since < longest.since)) longest = wait;
  }
  if (!longest.waits()) return std::nullopt;
  const auto waited = now - Clock::time_point(Duration(longest.since));
  if (waited < kStall || (told_since_ == longest.since && now < tell_again_)) return std::nullopt;
  told_since_ = longest.since;
  tell_again_ = now + kStall;
  const auto ranks = awaited_ranks(waits);
  return fmt::format("waiting {} s for rank{} {} in step {}, {}{}{}",
                     std::chrono::duration_cast<std::chrono::seconds>(waited).count(),
                     ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), longest.step + 1,
                     words_of(longest.what),
                     longest.index < 0 ? "" : fmt::format(" {}", longest.index),
                     busy_with(control, view, ranks));
}

// Twice the median and not the mean: one worker that is very slow would raise the mean so far that
// it was not slow any more.
std::vector<SlowWorker> slow_workers(std::span<const double> step_seconds) {
  std::vector<double> known;
  std::ranges::copy_if(step_seconds, std::back_inserter(known), [](double s) { return s > 0; });
  if (known.size() < 2) return {};
  const double median = lower_median(std::move(known));
  std::vector<SlowWorker> slow;
  for (std::size_t worker = 0; worker < step_seconds.size(); ++worker) {
    if (step_seconds[worker] < kSlow * median) continue;
    slow.push_back({static_cast<int>(worker), step_seconds[worker], median});
  }
  return slow;
}

std::string describe(const SlowWorker& slow) {
  return fmt::format("worker {} is slow: {:.1f} ms for a step, the median is {:.1f} ms",
                     slow.worker, 1e3 * slow.step_seconds, 1e3 * slow.median);
}

std::vector<std::string> SlowReport::look(const ControlBlock& control) {
  std::vector<double> seconds;
  for (const WorkerCard& card : control.cards()) {
    const bool steady = card.state.load() == TaskState::training &&
                        card.step.load(std::memory_order_relaxed) >= kSteadyStep;
    seconds.push_back(steady ? card.step_seconds.load(std::memory_order_relaxed) : 0);
  }
  std::vector<std::string> words;
  for (const SlowWorker& slow : slow_workers(seconds)) {
    if (named_.insert(slow.worker).second) words.push_back(describe(slow));
  }
  return words;
}

}  // namespace cohort::launch
