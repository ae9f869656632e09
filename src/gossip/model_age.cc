#include "gossip/model_age.h"

#include <algorithm>

namespace cohort {
namespace {

constexpr double kLongest = 2;  // Steps; a longer one is no longer what the learning rate allows.
constexpr double kLeastPart = 0.5;
constexpr double kAbreast = 2;

}  // namespace

double share_of_piece(double age, std::int64_t pieces_before, std::int64_t parts) {
  const auto all = static_cast<double>(parts);
  const double ahead = (all - 1) / 2;
  const double age_to_reach = (static_cast<double>(pieces_before) + 1 + ahead) / all;
  return std::clamp(age_to_reach - age, kLeastPart / all, kLongest);
}

double weight_of_lag(double lag) {
  if (lag <= kAbreast) return 1;
  return (kAbreast / lag) * (kAbreast / lag);
}

}  // namespace cohort
