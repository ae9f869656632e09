#include "gossip/model_age.h"

#include <algorithm>
#include <numeric>

namespace cohort::gossip {
namespace {

constexpr double kLongest = 2;  // Steps; a longer one is no longer what the learning rate allows.
constexpr double kLeastPart = 0.5;  // Of a piece's share of a step.
constexpr double kAbreast = 2;      // Steps; models that far apart still count as equally old.

/// Of weights and ages. Far beyond any, and their sums are still finite.
bool can_be(double number) {
  return number >= 0 && number < 1e100;
}

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
  std::vector<double> shares(weights.size());
  double newest = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!can_be(weights[i]) || !can_be(ages[i])) continue;
    shares[i] = weights[i];
    newest = std::max(newest, ages[i]);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0) shares[i] *= weight_of_lag(newest - ages[i]);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!(sum > 0)) std::ranges::fill(shares, 1.0);
  for (double& share : shares) share /= sum > 0 ? sum : static_cast<double>(shares.size());
  return shares;
}

double age_of_mean(std::span<const double> shares, std::span<const double> ages) {
  double mean = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0 && can_be(ages[i])) mean += shares[i] * ages[i];
  }
  return mean;
}

}  // namespace cohort::gossip
