#include "cluster/work_board.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort::cluster {
namespace {

void check_left(const WorkLeft& left) {
  if (left.parts < 1 || left.next < 0) {
    fail(ErrorCode::invalid,
         "a work board got {} parts of a step, from part {} on; it needs at least one part, and no "
         "negative number",
         left.parts, left.next);
  }
  for (const Claim& piece : left.again) {
    const bool is_part = piece.step >= 0 && piece.part >= 0 && piece.part < left.parts;
    // Compared by steps: their product with the parts may have no room in a number.
    const bool is_before =
        piece.step < left.next / left.parts ||
        (piece.step == left.next / left.parts && piece.part < left.next % left.parts);
    if (is_part && is_before) continue;
    fail(ErrorCode::invalid,
         "a work board shall hand out part {} of step {} again, of {} parts a step; it was not "
         "handed out before",
         piece.part, piece.step, left.parts);
  }
}

void check_options(const WorkBoard::Options& options) {
  if (options.workers < 1) {
    fail(ErrorCode::invalid, "a work board got {} workers; it needs at least one", options.workers);
  }
  check_left(options.left);
  if (options.end_step < 0) {
    fail(ErrorCode::invalid, "a work board got the end step {}; it must be at least 0",
         options.end_step);
  }
  if (options.bound && *options.bound < 0) {
    fail(ErrorCode::invalid, "a work board got a bound of {} steps; it must be at least 0",
         *options.bound);
  }
}

}  // namespace

// Pieces are numbered: step · parts + part. `next_` is the first number that was never handed out,
// `again_` has those below it that were and came to nothing, ascending, of which the first `given_`
// are on their way once more. So the whole of what is left is one number and a short list, which a
// checkpoint has as it is (WorkLeft), whatever the order in which pieces were done.
WorkLeft shortest(WorkLeft left) {
  const auto number = [&](const Claim& piece) { return piece.step * left.parts + piece.part; };
  while (!left.again.empty() && number(left.again.back()) == left.next - 1) {
    left.again.pop_back();
    --left.next;
  }
  return left;
}

WorkBoard::WorkBoard(const Options& options)
    : options_(options), next_(options.left.next), again_(options.left.again) {
  check_options(options);
  std::ranges::sort(again_);
  workers_.resize(static_cast<std::size_t>(options.workers));
}

WorkBoard::Worker& WorkBoard::worker(int number) {
  if (number < 0 || number >= options_.workers) {
    fail(ErrorCode::invalid, "worker {} asked for work; the workers are 0 to {}", number,
         options_.workers - 1);
  }
  return workers_[static_cast<std::size_t>(number)];
}

Claim WorkBoard::next_piece() const {
  if (given_ < again_.size()) return again_[given_];
  return {.step = next_ / options_.left.parts,
          .part = static_cast<int>(next_ % options_.left.parts)};
}

// Who asks is free: whatever it was at counts for the bound no more. There is no end before
// everybody has come to it, since a worker that is lost with its last piece leaves work for those
// who wait.
WorkBoard::Answer WorkBoard::claim(int number, Claim& claim) {
  Worker& mine = worker(number);
  mine.at.reset();
  if (stopped_) return Answer::end;
  const Claim next = next_piece();
  const auto works = [](const Worker& other) { return other.at.has_value(); };
  if (next.step >= options_.end_step) {
    return std::ranges::any_of(workers_, works) ? Answer::wait : Answer::end;
  }
  const bool too_far_ahead =
      options_.bound && std::ranges::any_of(workers_, [&](const auto& other) {
        return other.at && next.step - *other.at > *options_.bound;
      });
  if (too_far_ahead) return Answer::wait;
  if (!std::exchange(has_claimed_, true)) forget_takers();
  if (given_ < again_.size()) {
    ++given_;
  } else {
    ++next_;
  }
  claim = {.step = next.step, .part = next.part};
  mine.at = next.step;
  mine.taken.push_back({.step = next.step, .part = next.part, .taken_by = number});
  return Answer::claimed;
}

void WorkBoard::forget_takers() {
  for (Claim& piece : again_) piece.taken_by = -1;
}

void WorkBoard::rest(int number) {
  worker(number).at.reset();
}

void WorkBoard::done(int number) {
  worker(number) = {};
}

bool WorkBoard::has(const Claim& piece) const {
  return piece.step >= 0 && piece.step < options_.end_step && piece.part >= 0 &&
         piece.part < options_.left.parts;
}

// A worker that makes an unanswered push again says which pieces that push was of. The server's
// board may be that of a checkpoint or a copy from before these were handed out: it learns of them
// now, with all between, which then are still to be done.
void WorkBoard::done_before(std::span<const Claim> pieces) {
  const std::int64_t parts = options_.left.parts;
  for (const Claim& piece : pieces) {
    // What this board was made of may be older than that it was handed out.
    for (; next_ <= piece.step * parts + piece.part; ++next_) {
      again_.push_back({.step = next_ / parts, .part = static_cast<int>(next_ % parts)});
    }
    std::erase(again_, piece);
  }
}

// Its pieces are the next to be handed out, before all new ones: where there is a bound, others may
// have to wait until the oldest step is done.
void WorkBoard::gone(int number) {
  Worker& lost = worker(number);
  for (Claim& piece : lost.taken) piece.taken_by = -1;
  again_.erase(again_.begin(), again_.begin() + static_cast<std::ptrdiff_t>(given_));
  given_ = 0;
  again_.insert(again_.end(), lost.taken.begin(), lost.taken.end());
  std::ranges::sort(again_);
  lost = {};
}

void WorkBoard::stop() {
  stopped_ = true;
}

WorkLeft WorkBoard::left() const {
  WorkLeft left{.next = next_, .parts = options_.left.parts, .again = {}};
  left.again.assign(again_.begin() + static_cast<std::ptrdiff_t>(given_), again_.end());
  for (const Worker& one : workers_) {
    left.again.insert(left.again.end(), one.taken.begin(), one.taken.end());
  }
  std::ranges::sort(left.again);
  return left;
}

}  // namespace cohort::cluster
