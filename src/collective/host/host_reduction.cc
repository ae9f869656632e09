#include "collective/host/host_reduction.h"

#include <algorithm>

#include "base/fail.h"
#include "collective/sum_kernel.h"

namespace cohort::collective {
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

std::size_t HostBarrier::bytes_needed(int world) {
  return sizeof(Line) * static_cast<std::size_t>(world);
}

HostBarrier::HostBarrier(int rank, int world, std::span<std::byte> region, os::PeerWatch watch,
                         os::WaitPolicy policy)
    : rank_(rank),
      lines_(reinterpret_cast<Line*>(region.data()), static_cast<std::size_t>(world)),
      watch_(std::move(watch)),
      wait_(policy) {}

bool HostBarrier::has_arrived(int peer) const {
  const std::uint32_t theirs = lines_[peer].arrivals.load(std::memory_order_acquire);
  // The difference, not the order, because the counts wrap around.
  return static_cast<std::int32_t>(theirs - arrivals_) >= 0;
}

// Arriving is one store to this rank's own line; then the lines of all others are looked at. Ranks
// that are not late cost one load each.
void HostBarrier::arrive_and_wait(Deadline deadline, const char* doing) {
  if (failed_rank_ >= 0) throw Error(ErrorCode::peer_lost, failure_).about_rank(failed_rank_);
  Line& mine = lines_[rank_];
  mine.arrivals.store(++arrivals_, std::memory_order_release);
  mine.event.notify();
  for (int peer = 0; peer < static_cast<int>(lines_.size()); ++peer) {
    if (peer != rank_ && !has_arrived(peer)) wait_for(peer, deadline, doing);
  }
}

bool HostBarrier::has_left(int peer) const {
  return lines_[peer].left.load(std::memory_order_acquire) != 0;
}

// First whether a rank is gone, then whether it had arrived: the last thing it did may have been to
// arrive.
void HostBarrier::look_for_the_lost(const char* doing) {
  if (has_left(rank_)) give_up(ErrorCode::cancelled, rank_, doing);
  for (int rank = 0; rank < static_cast<int>(lines_.size()); ++rank) {
    if (has_left(rank) && !has_arrived(rank)) give_up(ErrorCode::peer_lost, rank, doing);
  }
  for (const int rank : watch_.dead_ranks()) {
    if (!has_arrived(rank)) give_up(ErrorCode::peer_lost, rank, doing);
  }
}

void HostBarrier::wait_for(int peer, Deadline deadline, const char* doing) {
  const bool in_time = wait_.until(
      lines_[peer].event, [&] { return has_arrived(peer) || has_left(peer); }, deadline,
      [&] { look_for_the_lost(doing); });
  if (!in_time) give_up(ErrorCode::timeout, peer, doing);
  if (!has_arrived(peer)) give_up(ErrorCode::peer_lost, peer, doing);
}

void HostBarrier::give_up(ErrorCode code, int peer, const char* doing) {
  std::string missing;
  for (int rank = 0; rank < static_cast<int>(lines_.size()); ++rank) {
    if (rank == rank_ || has_arrived(rank)) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  failed_rank_ = peer;
  failure_ = code == ErrorCode::timeout
                 ? fmt::format("rank {} did not come to the {} in time (missing: rank {})", peer,
                               doing, missing)
             : peer == rank_
                 ? fmt::format("this rank has left, and waits no longer in the {}", doing)
                 : fmt::format("rank {} is gone; it was awaited in the {}", peer, doing);
  throw Error(code, failure_).about_rank(peer);
}

void HostBarrier::leave() noexcept {
  lines_[rank_].left.store(1, std::memory_order_release);
  lines_[rank_].event.notify();
}

std::size_t HostReduction::control_bytes(const Shape& shape) {
  return Offsets(shape).end;
}

std::size_t HostReduction::floats_bytes(const Shape& shape) {
  return contribution_offset(shape, shape.world);
}

HostReduction::HostReduction(int rank, const Shape& shape, std::span<std::byte> control,
                             std::span<std::byte> floats, os::PeerWatch watch,
                             os::WaitPolicy policy)
    : rank_(rank),
      shape_(shape),
      control_(control),
      floats_(floats),
      barrier_(rank, shape.world, control, std::move(watch), policy) {}

HostReduction::HostReduction(int rank, const Shape& shape, std::span<std::byte> region,
                             os::PeerWatch watch, os::WaitPolicy policy)
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

// Called for every block of every step, so it allocates nothing for as many ranks as a host usually
// has.
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

// The second barrier keeps the places until everybody has read them.
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

}  // namespace cohort::collective
