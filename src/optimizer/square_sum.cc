#include "optimizer/square_sum.h"

#include <algorithm>
#include <array>

#include "base/vectorize.h"

namespace cohort {
namespace {

constexpr std::size_t kLanes = 32;

// Independent lanes, because the compiler may not reorder a sum of floats by itself.
COHORT_VECTORIZE void add_squares(double* lanes, const float* values, std::size_t count) {
  for (std::size_t i = 0; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
}

}  // namespace

double sum_of_squares(std::span<const float> values) {
  std::array<double, kLanes> lanes{};
  add_squares(lanes.data(), values.data(), values.size());
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::size_t i = values.size() / kLanes * kLanes; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]) * values[i];
  }
  return sum;
}

double clip_scale(double norm, double clip_norm) {
  if (clip_norm <= 0) return 1;
  return std::min(1.0, clip_norm / (norm + 1e-6));
}

}  // namespace cohort
