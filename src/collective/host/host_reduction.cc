#include "collective/host/host_reduction.h"

#include <algorithm>

#include "base/fail.h"
#include "collective/sum_kernel.h"

namespace cohort {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kNotes = 8;  // Doubles: one cache line per rank.

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t pages_for_floats(std::size_t floats) {
  return round_up(floats * sizeof(float), kPage);
}

// Control: barrier | notes | small messages.
struct Offsets {
  std::size_t notes, small, end;

  explicit Offsets(const HostReduction::Shape& shape) {
    const auto world = static_cast<std::size_t>(shape.world);
    notes = round_up(HostBarrier::bytes_needed(shape.world), kPage);
    small = notes + round_up(world * kNotes * sizeof(double), kPage);
    end = small + world * HostReduction::kSmallBytes;
  }
};

// Floats: shared | contribution 0 | contribution 1 …
std::size_t contribution_offset(const HostReduction::Shape& shape, int rank) {
  return pages_for_floats(shape.shared) +
         static_cast<std::size_t>(rank) * pages_for_floats(shape.contribution);
}

}  // namespace

std::size_t HostReduction::control_bytes(const Shape& shape) {
  return Offsets(shape).end;
}

std::size_t HostReduction::floats_bytes(const Shape& shape) {
  return contribution_offset(shape, shape.world);
}

HostReduction::HostReduction(int rank, const Shape& shape, std::span<std::byte> control,
                             std::span<std::byte> floats, PeerWatch watch, WaitPolicy policy)
    : rank_(rank),
      shape_(shape),
      control_(control),
      floats_(floats),
      barrier_(rank, shape.world, control, std::move(watch), policy) {}

HostReduction::HostReduction(int rank, const Shape& shape, std::span<std::byte> region,
                             PeerWatch watch, WaitPolicy policy)
    : HostReduction(rank, shape, region.first(control_bytes(shape)),
                    region.subspan(control_bytes(shape)), std::move(watch), policy) {}

std::span<float> HostReduction::contribution(int rank) const {
  std::byte* begin = floats_.data() + contribution_offset(shape_, rank);
  return {reinterpret_cast<float*>(begin), shape_.contribution};
}

std::span<float> HostReduction::shared() const {
  return {reinterpret_cast<float*>(floats_.data()), shape_.shared};
}

std::span<double> HostReduction::note(int rank) const {
  const std::size_t offset =
      Offsets(shape_).notes + static_cast<std::size_t>(rank) * kNotes * sizeof(double);
  return {reinterpret_cast<double*>(control_.data() + offset), kNotes};
}

std::span<std::byte> HostReduction::small(int rank) const {
  return control_.subspan(Offsets(shape_).small + static_cast<std::size_t>(rank) * kSmallBytes,
                          kSmallBytes);
}

void HostReduction::sum_contributions(Segment segment, std::span<float> out) const {
  constexpr int kManyRanks = 64;
  const float* few[kManyRanks];
  std::vector<const float*> many(shape_.world > kManyRanks ? shape_.world : 0);
  const float** sources = many.empty() ? few : many.data();
  for (int rank = 0; rank < shape_.world; ++rank) {
    sources[rank] = contribution(rank).data() + segment.begin;
  }
  sum_of(out.first(segment.size()), {sources, static_cast<std::size_t>(shape_.world)});
}

std::span<const float> HostReduction::all_reduce(std::size_t count, Deadline deadline) {
  barrier(deadline, "start of the all-reduce");
  const Segment mine = owned(count);
  const std::span<float> sum = contribution(0).first(count);
  sum_contributions(mine, sum.subspan(mine.begin, mine.size()));
  barrier(deadline, "end of the all-reduce");
  return sum;
}

template <Number T>
void HostReduction::sum_part(std::span<T> part, Deadline deadline) {
  const auto place = [&](int rank) {
    return std::span(reinterpret_cast<T*>(small(rank).data()), part.size());
  };
  std::ranges::copy(part, place(rank_).begin());
  barrier(deadline, "sum over the workers");
  std::ranges::fill(part, T{});
  for (int rank = 0; rank < shape_.world; ++rank) add_to<T>(part, place(rank));
  barrier(deadline, "sum over the workers");
}

void HostReduction::small_sum(Numbers numbers, Deadline deadline) {
  numbers.as_span([&]<Number T>(std::span<T> rest) {
    while (!rest.empty()) {
      const auto part = rest.first(std::min(rest.size(), kSmallBytes / sizeof(T)));
      sum_part(part, deadline);
      rest = rest.subspan(part.size());
    }
  });
}

}  // namespace cohort
