#include "transport/shm/ring_layout.h"

#include <algorithm>
#include <bit>

namespace cohort {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSmallestFar = 512;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

/// A power of two.
std::size_t far_ring_bytes(std::size_t ranks, std::size_t ring_bytes) {
  const std::size_t share = std::bit_floor(RingLayout::kAllRings / (ranks * ranks));
  return std::min(ring_bytes, std::max(share, kSmallestFar));
}

}  // namespace

RingLayout::RingLayout(int ranks, std::size_t ring_bytes)
    : ranks_(static_cast<std::size_t>(ranks)),
      near_bytes_(ring_bytes),
      far_bytes_(far_ring_bytes(ranks_, ring_bytes)),
      counters_at_(whole_pages(ranks_ * sizeof(RankState))),
      near_at_(whole_pages(counters_at_ + ranks_ * ranks_ * sizeof(RingCounters))),
      far_at_(near_at_ + 2 * ranks_ * near_bytes_),
      total_(far_at_ + ranks_ * ranks_ * far_bytes_) {}

RankState& RingLayout::state(std::byte* region, int rank) const {
  return reinterpret_cast<RankState*>(region)[rank];
}

std::size_t RingLayout::direction(std::size_t from, std::size_t to) const {
  if ((from + 1) % ranks_ == to) return 0;
  return (to + 1) % ranks_ == from ? 1 : 2;
}

RingMemory RingLayout::ring(std::byte* region, int from, int to) const {
  const auto sender = static_cast<std::size_t>(from);
  const auto receiver = static_cast<std::size_t>(to);
  const std::size_t pair = sender * ranks_ + receiver;
  auto* counters = reinterpret_cast<RingCounters*>(region + counters_at_) + pair;
  const std::size_t place = direction(sender, receiver);
  if (place < 2) {
    return {counters, {region + near_at_ + (2 * sender + place) * near_bytes_, near_bytes_}};
  }
  return {counters, {region + far_at_ + pair * far_bytes_, far_bytes_}};
}

}  // namespace cohort
