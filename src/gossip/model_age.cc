#include "gossip/model_age.h"

#include <algorithm>

namespace cohort {
namespace {

constexpr double kLongest = 2;  // Turns; a longer one is no longer what the learning rate allows.
constexpr double kLeastPart = 0.5;
constexpr double kAbreast = 2;  // Turns.

/// How many steps are made while everybody does a piece, but one at least.
double steps_in_turn(const AgeRule& rule) {
  return std::max(1.0, static_cast<double>(rule.workers) / static_cast<double>(rule.parts));
}

}  // namespace

double AgeRule::share_of_piece(double age, std::int64_t pieces_before) const {
  const auto all = static_cast<double>(parts);
  const double ahead = static_cast<double>(workers - 1) / 2;
  const double age_to_reach = (static_cast<double>(pieces_before) + 1 + ahead) / all;
  return std::clamp(age_to_reach - age, kLeastPart / all, kLongest * steps_in_turn(*this));
}

double AgeRule::weight_of_lag(double lag) const {
  const double abreast = kAbreast * steps_in_turn(*this);
  if (lag <= abreast) return 1;
  return (abreast / lag) * (abreast / lag);
}

}  // namespace cohort
