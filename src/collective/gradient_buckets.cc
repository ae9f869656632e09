#include "collective/gradient_buckets.h"

namespace cohort {

GradientBuckets GradientBuckets::of(std::span<const std::size_t> offsets, std::size_t size,
                                    std::size_t tail, std::size_t bucket_bytes) {
  GradientBuckets buckets;
  buckets.bucket_of.resize(offsets.size());
  std::size_t end = size + tail;
  std::size_t waiting = 0;
  for (std::size_t i = offsets.size(); i-- > 0;) {
    const std::size_t begin = offsets[i];
    buckets.bucket_of[i] = buckets.segments.size();
    ++waiting;
    if ((end - begin) * sizeof(float) >= bucket_bytes || i == 0) {
      buckets.segments.push_back({begin, end});
      buckets.parameters.push_back(waiting);
      end = begin;
      waiting = 0;
    }
  }
  return buckets;
}

}  // namespace cohort
