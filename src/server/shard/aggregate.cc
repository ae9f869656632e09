#include "server/shard/aggregate.h"

#include "base/vectorize.h"
#include "collective/sum_kernel.h"

namespace cohort {
namespace {

COHORT_VECTORIZE void add_weighted_loop(float* __restrict into, const float* __restrict from,
                                        std::size_t count, float weight) {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i] * weight;
}

COHORT_VECTORIZE void weighted_loop(float* __restrict out, const float* __restrict from,
                                    std::size_t count, float weight) {
  for (std::size_t i = 0; i < count; ++i) out[i] = from[i] * weight;
}

}  // namespace

void add_weighted(std::span<float> into, std::span<const float> from, float weight) {
  add_weighted_loop(into.data(), from.data(), into.size(), weight);
}

Aggregate::Aggregate(std::span<const Contribution> contributions) : contributions_(contributions) {
  const double first = contributions_.front().weight;
  equal_weights_ =
      std::ranges::all_of(contributions_, [&](const auto& one) { return one.weight == first; });
  if (equal_weights_) scale_ = first;
}

std::span<const float> Aggregate::piece(std::size_t begin, std::size_t count,
                                        std::span<float> scratch) const {
  if (contributions_.size() == 1) return contributions_.front().values.subspan(begin, count);
  const std::span<float> sum = scratch.first(count);
  if (equal_weights_) {
    std::vector<const float*> sources;
    for (const Contribution& one : contributions_) sources.push_back(one.values.data() + begin);
    sum_of(sum, sources);
    return sum;
  }
  const Contribution& first = contributions_.front();
  weighted_loop(sum.data(), first.values.data() + begin, count, static_cast<float>(first.weight));
  for (const Contribution& one : contributions_.subspan(1)) {
    add_weighted(sum, one.values.subspan(begin, count), static_cast<float>(one.weight));
  }
  return sum;
}

}  // namespace cohort
