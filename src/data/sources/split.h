#pragma once

#include <cohort/dataset.h>

#include <memory>
#include <string>
#include <vector>

namespace cohort {

/// Which samples train and which validate; each in ascending order.
struct Split {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> validation;
};

/// Throws Error(invalid) unless `fraction` is above 0 and below 1.
void check_validation_fraction(double fraction);

/// Sets a part of 0 … samples-1 aside by a permutation that `seed` determines: `fraction` of them,
/// rounded, at least one. Throws Error(invalid) where `source` (named in the message) has fewer
/// than two samples.
Split split_samples(const std::string& source, std::int64_t samples, double fraction,
                    std::uint64_t seed);

/// 0 … samples-1: where all train.
std::vector<std::int64_t> all_rows(std::int64_t samples);

/// Some samples of another dataset, as a dataset.
class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> samples);

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  Batch gather(std::span<const std::int64_t> indices) const override;
  void gather_into(std::span<const std::int64_t> indices, Batch& into) const override;
  bool in_memory() const override { return whole_->in_memory(); }

 private:
  std::vector<std::int64_t> in_whole(std::span<const std::int64_t> indices) const;

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> samples_;
};

}  // namespace cohort
