#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "launch/control/loss_queue.h"

namespace cohort {

/// A step by what all of its pieces say, each by its rows.
struct StepLoss {
  std::int64_t step = 0;
  double loss = 0;
  double gradient_norm = 0;
  std::optional<double> staleness = {};
  std::optional<double> consensus_distance = {};
};

/// What a worker may be working on, as far as the log is concerned: a step that is due, nothing
/// that is, or it is just asking for work and may have got anything.
constexpr std::int64_t kHoldsAny = 0;
constexpr std::int64_t kHoldsNothing = std::numeric_limits<std::int64_t>::max();

/// Makes one line for every step that is due of what its pieces say, whoever made them, in the
/// order of the steps. Pieces come when they come: a step is *settled* when all of its rows are
/// there and nobody holds an earlier one. Of some steps not all pieces ever come (whoever made one
/// died before it could tell, or it was made before the run was resumed); such a step is settled
/// when nobody holds any of it and several later steps are there. And nobody delays the log for
/// longer than kMostLater lines: what comes later than that is left out.
class DueLosses {
 public:
  static constexpr std::size_t kSomeLater = 8;
  static constexpr std::size_t kMostLater = 64;

  /// A piece that was made again replaces what it was before; one without rows says nothing.
  void add(const PieceLoss& piece);

  bool empty() const { return steps_.empty(); }

  /// Takes the first step if it is settled, by what the workers held before the last pieces were
  /// added; where `all` is set, whether or not it is.
  std::optional<StepLoss> next(std::span<const std::int64_t> held, bool all = false);

 private:
  using Pieces = std::map<std::int64_t, PieceLoss>;  // By their part.

  bool is_settled(std::span<const std::int64_t> held) const;

  std::map<std::int64_t, Pieces> steps_;
};

}  // namespace cohort
