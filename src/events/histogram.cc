#include "events/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cohort {
namespace {

constexpr std::size_t kBuckets = 30;

Histogram totals_of(std::span<const float> values) {
  Histogram totals;
  totals.min = std::numeric_limits<double>::infinity();
  totals.max = -totals.min;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    totals.min = std::min(totals.min, value);
    totals.max = std::max(totals.max, value);
    totals.count += 1;
    totals.sum += value;
    totals.sum_of_squares += value * value;
  }
  return totals;
}

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  Histogram histogram = totals_of(values);
  if (histogram.count == 0) return {};
  const double range = histogram.max - histogram.min;
  if (range == 0) {
    histogram.limits = {histogram.max};
    histogram.counts = {histogram.count};
    return histogram;
  }
  for (std::size_t i = 1; i < kBuckets; ++i) {
    histogram.limits.push_back(histogram.min + range * static_cast<double>(i) / kBuckets);
  }
  histogram.limits.push_back(histogram.max);
  histogram.counts.assign(kBuckets, 0);
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const auto bucket = static_cast<std::size_t>((value - histogram.min) / range * kBuckets);
    histogram.counts[std::min(bucket, kBuckets - 1)] += 1;
  }
  return histogram;
}

}  // namespace cohort
