#include "launch/control/loss_queue.h"

#include <algorithm>

namespace cohort {

std::size_t LossQueue::bytes_needed() {
  static_assert(sizeof(Head) <= kHeadBytes);
  return kHeadBytes + kRoom * sizeof(PieceLoss);
}

std::uint64_t LossQueue::begin() const {
  return std::max(head().released.load(std::memory_order_acquire),
                  head().start.load(std::memory_order_acquire));
}

bool LossQueue::put(const PieceLoss& piece) {
  std::uint64_t position = std::max(head().end.load(), head().start.load());
  const std::uint64_t first = begin();
  if (first == position && position % kRoom != 0) {
    position += kRoom - position % kRoom;
    head().start.store(position, std::memory_order_release);
  } else if (position - first >= kRoom) {
    return false;
  }
  pieces()[position % kRoom] = piece;
  head().end.store(position + 1, std::memory_order_release);
  return true;
}

}  // namespace cohort
