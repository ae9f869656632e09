#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace cohort {

/// The middle value; of an even number of values the mean of the two in the middle. Never called
/// with none.
inline double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("median of no values");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace cohort
