#include "collective/host/host_barrier.h"

#include "base/fail.h"

namespace cohort {

std::size_t HostBarrier::bytes_needed(int world) {
  return sizeof(Line) * static_cast<std::size_t>(world);
}

HostBarrier::HostBarrier(int rank, int world, std::span<std::byte> region, PeerWatch watch,
                         WaitPolicy policy)
    : rank_(rank),
      lines_(reinterpret_cast<Line*>(region.data()), static_cast<std::size_t>(world)),
      watch_(std::move(watch)),
      wait_(policy) {}

bool HostBarrier::has_arrived(int peer) const {
  const std::uint32_t theirs = lines_[peer].arrivals.load(std::memory_order_acquire);
  // The difference, not the order, because the counts wrap around.
  return static_cast<std::int32_t>(theirs - arrivals_) >= 0;
}

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
                 : fmt::format("rank {} is gone; it was awaited in the {}", peer, doing);
  throw Error(code, failure_).about_rank(peer);
}

void HostBarrier::leave() noexcept {
  lines_[rank_].left.store(1, std::memory_order_release);
  lines_[rank_].event.notify();
}

}  // namespace cohort
