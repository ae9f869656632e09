#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace cohort {

Slice worker_slice(std::int64_t samples, int rank, int world) {
  const std::int64_t base = samples / world;
  const std::int64_t larger = samples % world;  // Ranks below this one have one more.
  const std::int64_t begin = rank * base + std::min<std::int64_t>(rank, larger);
  return {begin, begin + base + (rank < larger ? 1 : 0)};
}

std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch) {
  return samples / batch + (samples % batch > 0 ? 1 : 0);
}

Cursor cursor_after(std::int64_t steps, std::int64_t samples, std::int64_t batch) {
  const std::int64_t per_epoch = steps_per_epoch(samples, batch);
  return {.epoch = steps / per_epoch, .offset = steps % per_epoch * batch};
}

std::vector<std::int64_t> GlobalOrder::epoch(std::int64_t number) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples_));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed_, static_cast<std::uint64_t>(number));
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

}  // namespace cohort
