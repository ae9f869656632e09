#pragma once

#include <span>

namespace cohort::gossip {

/// Push-sum (Kempe, Dobra and Gehrke 2003): every worker's model has a *weight*, 1 at first. Who
/// sends its model gives a part of its weight away with it; who merges takes the mean by weights
/// and adds them up. Weight is never made or lost, so however unevenly the workers send, the mean
/// of all models by weight is pulled to no one's side.
///
///   worker 0: model a, weight 1      sends (a, 1/2) to worker 1, keeps (a, 1/2)
///   worker 1: model b, weight 1      merges:  (1·b + 1/2·a) / (3/2),  weight 3/2
///   in all:   1/2·a + 3/2·(b + a/2)/(3/2)  =  a + b,  weights 1/2 + 3/2 = 2
///
/// These are the sums alone, without boxes or ages: parameter_mail.cc has those.

/// A model that has arrived.
struct WeightedModel {
  std::span<const float> values;
  double weight = 0;
};

struct Merged {
  double weight = 0;  ///< Of the merged model.
  /// How far the models that arrived were from the own one before: the mean of |own - other|,
  /// divided by |own|.
  double distance = 0;
};

/// own = (weight own + Σ weightᵢ valuesᵢ) / (weight + Σ weightᵢ), in one pass over memory. `weight`
/// is above 0, all models have the same size. What is equal stays as it is, to the last bit.
Merged merge_models(std::span<float> own, double weight, std::span<const WeightedModel> arrived);

/// The same with a model of which only the coordinates that are not 0 have arrived: the others of
/// the own model stay as they are, and count for nothing in the distance.
Merged merge_coordinates(std::span<float> own, double weight, const WeightedModel& arrived);

}  // namespace cohort::gossip
