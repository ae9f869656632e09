#include "data/sources/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "data/batch_buffer.h"
#include "data/sampler.h"

namespace cohort {

void check_validation_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1)) {
    fail(ErrorCode::invalid, "validation_fraction is {}; it must be above 0 and below 1", fraction);
  }
}

Split split_samples(const std::string& source, std::int64_t samples, double fraction,
                    std::uint64_t seed) {
  check_validation_fraction(fraction);
  if (samples < 2) {
    fail(ErrorCode::invalid,
         "{} has {} sample{}; at least 2 are needed, as one is set aside for validation", source,
         samples, samples == 1 ? "" : "s");
  }
  const auto wanted = static_cast<std::int64_t>(std::llround(samples * fraction));
  const std::int64_t aside = std::clamp<std::int64_t>(wanted, 1, samples - 1);
  const std::vector<std::int64_t> order =
      GlobalOrder(samples, seed).epoch(-1);  // No epoch's order.
  Split split{{order.begin() + aside, order.end()}, {order.begin(), order.begin() + aside}};
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

std::vector<std::int64_t> all_rows(std::int64_t samples) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(samples));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> samples)
    : whole_(std::move(whole)), samples_(std::move(samples)) {}

std::vector<std::int64_t> Subset::in_whole(std::span<const std::int64_t> indices) const {
  check_indices(indices, size());
  std::vector<std::int64_t> mapped;
  mapped.reserve(indices.size());
  for (const std::int64_t index : indices) {
    mapped.push_back(samples_[static_cast<std::size_t>(index)]);
  }
  return mapped;
}

Batch Subset::gather(std::span<const std::int64_t> indices) const {
  return whole_->gather(in_whole(indices));
}

void Subset::gather_into(std::span<const std::int64_t> indices, Batch& into) const {
  whole_->gather_into(in_whole(indices), into);
}

}  // namespace cohort
