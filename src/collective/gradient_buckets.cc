#include "collective/gradient_buckets.h"

namespace cohort {

GradientBuckets GradientBuckets::of(std::span<const std::size_t> offsets, std::size_t size,
                                    std::size_t tail, std::size_t bucket_bytes,
                                    const std::vector<bool>& travels_apart) {
  GradientBuckets buckets;
  buckets.bucket_of.resize(offsets.size());
  std::size_t end = size + tail;
  std::size_t waiting = 0;
  const auto close = [&](std::size_t begin, std::optional<std::size_t> apart = {}) {
    buckets.segments.push_back({begin, end});
    buckets.parameters.push_back(waiting);
    buckets.apart.push_back(apart);
    end = begin;
    waiting = 0;
  };
  for (std::size_t i = offsets.size(); i-- > 0;) {
    const std::size_t begin = offsets[i];
    const bool apart = !travels_apart.empty() && travels_apart[i];
    if (const std::size_t next = i + 1 < offsets.size() ? offsets[i + 1] : size;
        apart && end > next) {
      close(next);  // What stands between.
    }
    buckets.bucket_of[i] = buckets.segments.size();
    ++waiting;
    if (apart) {
      close(begin, i);
    } else if ((end - begin) * sizeof(float) >= bucket_bytes || i == 0) {
      close(begin);
    }
  }
  return buckets;
}

}  // namespace cohort
