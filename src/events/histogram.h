#pragma once

#include <span>
#include <vector>

namespace cohort {

/// How values are spread. Values that are not finite are left out of everything.
struct Histogram {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits;  ///< Right ends of the buckets, rising; the last is `max`.
  std::vector<double> counts;  ///< Values of each bucket.
};

/// Buckets of equal width between the smallest and the largest value; one where those are equal,
/// none where there are no values.
Histogram histogram_of(std::span<const float> values);

}  // namespace cohort
