#pragma once

#include <cstdint>

namespace cohort {

/// How far a worker's step moves its own model, where every worker has one and they merge them.
///
/// The *age* of a model is how many steps' worth of movement are in it. A worker's own update adds
/// its share of a step; a merge makes it the mean of the ages by weight, as it does with the
/// parameters. A piece of work is 1/parts of a step, so when n pieces are handed out the mean of
/// all models should have the age n/parts, whoever has done them. Full steps do not lead there: who
/// is fast, or one of few that are left, makes more of them, and what it tells the slow ones moves
/// those too; and models on their way, or with a slow worker, stand still.
///
/// So every worker makes with each piece the step that brings its own model to the age at which it
/// should be then. Workers that take turns have the ages of as many pieces as there are workers;
/// in the mean they are (workers - 1)/2 pieces younger than the newest. The age to reach is so much
/// ahead, and with as many workers as parts their steps are whole ones. One that is alone makes
/// steps of 1/parts; with more workers than parts (a run that was scaled) steps are longer than
/// whole ones, as there are more than one while everybody does a piece: a *turn*. A worker that was
/// away merges what others have told it, and makes a small step; one that was told nothing makes a
/// longer one, but of two turns at most, and makes up for the rest with the next ones. No piece
/// counts for less than half its share.
struct AgeRule {
  std::int64_t parts = 1;  ///< Of a step.
  std::int64_t workers = 1;

  /// Of a step, for a model of this age; `pieces_before` pieces of the job were handed out before.
  double share_of_piece(double age, std::int64_t pieces_before) const;

  /// What the weight of a model is multiplied by when it is merged with one that is `lag` steps
  /// older. Those that are abreast, two turns apart at most, count by their weights alone; one that
  /// was left behind has little to say, and with all its weight would throw the others back.
  double weight_of_lag(double lag) const;
};

}  // namespace cohort
