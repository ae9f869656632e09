#include "collective/host/update_journal.h"

#include <algorithm>

namespace cohort {
namespace {

constexpr int kBlockBits = 24;
constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockBits) - 1;

// What a killed process has done ends between two of its instructions, and all before that is in
// memory: only the compiler must not change the order.
void keep_order() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

std::size_t room_floats(std::size_t block) {
  constexpr std::size_t kLine = 64 / sizeof(float);
  return (block + kLine - 1) / kLine * kLine;
}

}  // namespace

std::size_t UpdateJournal::bytes_needed(const Shape& shape) {
  return static_cast<std::size_t>(shape.world) *
         (sizeof(Line) + shape.vectors * room_floats(shape.block) * sizeof(float));
}

UpdateJournal::UpdateJournal(int rank, const Shape& shape, std::span<std::byte> region)
    : rank_(rank), shape_(shape), region_(region) {}

UpdateJournal::Line& UpdateJournal::line(int rank) const {
  return reinterpret_cast<Line*>(region_.data())[rank];
}

float* UpdateJournal::room(int rank, std::size_t vector) const {
  const std::size_t before = static_cast<std::size_t>(rank) * shape_.vectors + vector;
  return reinterpret_cast<float*>(region_.data() +
                                  static_cast<std::size_t>(shape_.world) * sizeof(Line)) +
         before * room_floats(shape_.block);
}

void UpdateJournal::begin(std::uint64_t number, const Plan& plan) {
  Line& mine = line(rank_);
  mine.plan = plan;
  keep_order();
  mine.done.store(number << kBlockBits, std::memory_order_release);
  keep_order();
}

void UpdateJournal::keep(Vectors block) {
  for (std::size_t i = 0; i < block.size(); ++i) std::ranges::copy(block[i], room(rank_, i));
  Line& mine = line(rank_);
  keep_order();
  mine.kept.store(mine.done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  keep_order();
}

void UpdateJournal::done() {
  Line& mine = line(rank_);
  keep_order();
  mine.done.store(mine.kept.load(std::memory_order_relaxed), std::memory_order_release);
  keep_order();
}

UpdateJournal::Progress UpdateJournal::progress(int rank) const {
  const Line& theirs = line(rank);
  const std::uint64_t done = theirs.done.load(std::memory_order_acquire);
  return {.number = done >> kBlockBits,
          .blocks = done & kBlockMask,
          .in_block = theirs.kept.load(std::memory_order_acquire) == done + 1,
          .plan = theirs.plan};
}

void UpdateJournal::restore(int rank, Vectors block) const {
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::copy_n(room(rank, i), block[i].size(), block[i].begin());
  }
}

}  // namespace cohort
