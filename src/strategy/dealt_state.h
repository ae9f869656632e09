#pragma once

#include <cstdint>
#include <vector>

#include "tensor/training_state.h"

namespace cohort::strategy {

/// What one worker goes on from when a checkpoint was written by another number of workers: what
/// each of them had is added up, or averaged, and dealt out. docs/checkpoints.md has the rules.
/// Every worker reads all parts of the checkpoint and makes its own share of them, without asking
/// anybody:
///
///   saved by 3 workers, dealt to 2            saved by 2, dealt to 3
///   leftovers   0 ← 0 + 2       1 ← 1         0 ← 0    1 ← 1    2 ← nothing
///   views       0 ← mean(0, 2)  1 ← 1         0 ← 0    1 ← 1    2 ← a copy of 0
///   velocity    each a half of the sum        each a third of the sum
///
/// *Leftovers* are what messages have left out, and momentum before a codec: shares of one sum.
/// With fewer workers, worker r gets the sum of those of r, r + world, r + 2·world, …; with more,
/// worker r has its own and the new ones have none. So their sum over the workers stays what it
/// was. A velocity of pieces that are handed out is a share of one sum too, and everybody has
/// pieces: each gets an equal part of it. Everything else (inner optimizers, models of its own,
/// buffers) is a worker's own *view* of the same: with fewer workers the mean of the same ones,
/// with more a copy of that of worker r mod the number there were.
class DealtState {
 public:
  struct Place {
    int rank = 0;
    int world = 1;
    int saved = 1;  ///< The workers that wrote the checkpoint.
  };
  explicit DealtState(const Place& place) : place_(place) {}

  /// What worker `from` had; all of them, in their order.
  void add(int from, tensor::TrainingState state);

  /// What this worker goes on from.
  tensor::TrainingState take();

 private:
  bool gets_view_of(int from) const;
  bool gets_leftovers_of(int from) const;
  void add_view(tensor::TrainingState state);
  void add_leftovers(const tensor::TrainingState& state);
  void add_velocity(const tensor::TrainingState& state);

  /// Vectors that become a mean.
  struct Mean {
    std::vector<double> sum = {};
    std::int64_t count = 0;

    void add(const std::vector<float>& values);
    void take(std::vector<float>& into) const;
  };

  const Place place_;
  bool has_view_ = false;
  tensor::TrainingState dealt_;
  std::vector<cluster::WorkLeft> work_;
  Mean parameters_;
  Mean buffers_;
  std::vector<Mean> slots_;
  Mean ages_;
  std::vector<double> velocity_;
};

}  // namespace cohort::strategy
