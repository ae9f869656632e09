#include "cluster/work_board.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort {
namespace {

void check_options(const WorkBoard::Options& options) {
  if (options.workers < 1 || options.parts < 1) {
    fail(ErrorCode::invalid,
         "a work board got {} workers and {} parts of a step; it needs at least one of each",
         options.workers, options.parts);
  }
  if (options.end_step < options.first_step) {
    fail(ErrorCode::invalid, "a work board got the steps {} to {}; the end comes before the start",
         options.first_step, options.end_step);
  }
  if (options.bound && *options.bound < 0) {
    fail(ErrorCode::invalid, "a work board got a bound of {} steps; it must be at least 0",
         *options.bound);
  }
}

void check_worker(int worker, std::size_t workers) {
  if (worker < 0 || static_cast<std::size_t>(worker) >= workers) {
    fail(ErrorCode::invalid, "worker {} asked for work; the workers are 0 to {}", worker,
         workers - 1);
  }
}

}  // namespace

WorkBoard::WorkBoard(const Options& options) : options_(options) {
  check_options(options);
  at_.resize(static_cast<std::size_t>(options.workers));
}

WorkBoard::Answer WorkBoard::claim(int worker, Claim& claim) {
  check_worker(worker, at_.size());
  std::optional<std::int64_t>& mine = at_[static_cast<std::size_t>(worker)];
  mine.reset();
  const std::int64_t step = options_.first_step + next_ / options_.parts;
  if (stopped_ || step >= options_.end_step) return Answer::end;
  const bool too_far_ahead = std::ranges::any_of(
      at_, [&](const auto& at) { return at && options_.bound && step - *at > *options_.bound; });
  if (too_far_ahead) return Answer::wait;
  claim = {.step = step, .part = static_cast<int>(next_ % options_.parts)};
  mine = step;
  ++next_;
  return Answer::claimed;
}

void WorkBoard::done(int worker) {
  check_worker(worker, at_.size());
  at_[static_cast<std::size_t>(worker)].reset();
}

void WorkBoard::stop() {
  stopped_ = true;
}

}  // namespace cohort
