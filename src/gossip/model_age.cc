#include "gossip/model_age.h"

#include <algorithm>
#include <numeric>

namespace cohort::gossip {
namespace {

constexpr double kLongest = 2;  // Steps; a longer one is no longer what the learning rate allows.
constexpr double kLeastPart = 0.5;  // Of a piece's share of a step.
constexpr double kAbreast = 2;      // Steps; models that far apart still count as equally old.

}  // namespace

double share_of_piece(double age, std::int64_t pieces_before, std::int64_t parts) {
  const auto all = static_cast<double>(parts);
  const double ahead = (all - 1) / 2;
  const double age_to_reach = (static_cast<double>(pieces_before) + 1 + ahead) / all;
  return std::clamp(age_to_reach - age, kLeastPart / all, kLongest);
}

// Falls with the square beyond that, so that models far behind vanish from a mean without a jump.
double weight_of_lag(double lag) {
  if (lag <= kAbreast) return 1;
  return (kAbreast / lag) * (kAbreast / lag);
}

std::vector<double> shares_in_mean(std::span<const double> weights, std::span<const double> ages) {
  const double newest = std::ranges::max(ages);
  std::vector<double> shares(weights.begin(), weights.end());
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] *= weight_of_lag(newest - ages[i]);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace cohort::gossip
