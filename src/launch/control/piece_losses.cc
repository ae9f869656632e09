#include "launch/control/piece_losses.h"

#include <algorithm>
#include <cmath>

namespace cohort::launch {
namespace {

/// Whether the pieces have all rows of their step.
bool is_whole(const std::map<std::int64_t, PieceLoss>& pieces) {
  std::int64_t rows = 0;
  for (const auto& [part, piece] : pieces) rows += piece.rows;
  return rows >= pieces.begin()->second.global_rows;
}

/// The mean of what the pieces have in a field, by their rows; nothing where none has it.
std::optional<double> mean(const std::map<std::int64_t, PieceLoss>& pieces,
                           double PieceLoss::*field) {
  double sum = 0;
  double weights = 0;
  for (const auto& [part, piece] : pieces) {
    if (std::isnan(piece.*field)) continue;
    const auto weight = static_cast<double>(piece.rows);
    sum += weight * piece.*field;
    weights += weight;
  }
  if (weights == 0) return std::nullopt;
  return sum / weights;
}

}  // namespace

std::size_t LossQueue::bytes_needed() {
  static_assert(sizeof(Head) <= kHeadBytes);
  return kHeadBytes + kRoom * sizeof(PieceLoss);
}

// Whoever puts may have moved the start beyond what was released; see put().
std::uint64_t LossQueue::begin() const {
  return std::max(head().released.load(std::memory_order_acquire),
                  head().start.load(std::memory_order_acquire));
}

// The piece is written before `end` says that it is there: a death in between leaves the queue as
// it was. A death after a new start was stored leaves `end` before it, hence the larger of the two.
bool LossQueue::put(const PieceLoss& piece) {
  std::uint64_t position = std::max(head().end.load(), head().start.load());
  const std::uint64_t first = begin();
  if (first == position && position % kRoom != 0) {
    position += kRoom - position % kRoom;
    head().start.store(position, std::memory_order_release);
  } else if (position - first >= kRoom) {
    return false;
  }
  pieces()[position % kRoom] = piece;
  head().end.store(position + 1, std::memory_order_release);
  return true;
}

void DueLosses::add(const PieceLoss& piece) {
  if (piece.rows > 0) steps_[piece.step].insert_or_assign(piece.part, piece);
}

bool DueLosses::can_be_told(std::span<const std::int64_t> held) const {
  const auto& [step, pieces] = *steps_.begin();
  const std::size_t later = steps_.size() - 1;
  if (later >= kMostLater) return true;
  if (is_whole(pieces)) {
    return std::ranges::none_of(held, [&](std::int64_t one) { return one > 0 && one < step; });
  }
  return later >= kSomeLater &&
         std::ranges::none_of(held, [&](std::int64_t one) { return one <= step; });
}

std::optional<StepLoss> DueLosses::next(std::span<const std::int64_t> held, bool all) {
  if (steps_.empty() || !(all || can_be_told(held))) return std::nullopt;
  const auto& [step, pieces] = *steps_.begin();
  const StepLoss result{.step = step,
                        .loss = mean(pieces, &PieceLoss::loss).value_or(0),
                        .gradient_norm = mean(pieces, &PieceLoss::gradient_norm).value_or(0),
                        .staleness = mean(pieces, &PieceLoss::staleness),
                        .consensus_distance = mean(pieces, &PieceLoss::consensus_distance)};
  steps_.erase(steps_.begin());
  return result;
}

}  // namespace cohort::launch
