#include "launch/control/due_losses.h"

#include <algorithm>
#include <cmath>

namespace cohort {
namespace {

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

void DueLosses::add(const PieceLoss& piece) {
  if (piece.rows > 0) steps_[piece.step].insert_or_assign(piece.part, piece);
}

bool DueLosses::is_settled(std::span<const std::int64_t> held) const {
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
  if (steps_.empty() || !(all || is_settled(held))) return std::nullopt;
  const auto& [step, pieces] = *steps_.begin();
  const StepLoss result{.step = step,
                        .loss = mean(pieces, &PieceLoss::loss).value_or(0),
                        .gradient_norm = mean(pieces, &PieceLoss::gradient_norm).value_or(0),
                        .staleness = mean(pieces, &PieceLoss::staleness),
                        .consensus_distance = mean(pieces, &PieceLoss::consensus_distance)};
  steps_.erase(steps_.begin());
  return result;
}

}  // namespace cohort
