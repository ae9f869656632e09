#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cohort::gossip {

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
/// should be then. Workers that take turns have the ages of the last `parts` pieces, which are
/// (parts - 1)/2 pieces younger than the newest in the mean; the age to reach is so much ahead, and
/// their steps are whole ones. One that is alone makes steps of 1/parts. A worker that was away
/// merges what others have told it, and makes a small step; one that was told nothing makes a
/// longer one, but of two steps at most, and makes up for the rest with the next ones. No piece
/// counts for less than half its share.
///
/// `pieces_before`: how many pieces of the job were handed out before this one.
double share_of_piece(double age, std::int64_t pieces_before, std::int64_t parts);

/// What the weight of a model is multiplied by when it is merged with one that is `lag` steps
/// older. Those that are abreast, two steps apart at most, count by their weights alone; one that
/// was left behind has little to say, and with all its weight would throw the others back.
double weight_of_lag(double lag);

/// How much each of all models counts in their mean, by its weight and its age; adds up to 1. One
/// that says of itself what is no weight or no age (below 0, not finite) counts for nothing, and
/// where no model is left by that, all count alike.
std::vector<double> shares_in_mean(std::span<const double> weights, std::span<const double> ages);

/// Of those that count.
double age_of_mean(std::span<const double> shares, std::span<const double> ages);

}  // namespace cohort::gossip
