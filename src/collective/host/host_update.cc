#include "collective/host/host_update.h"

#include <algorithm>

#include "base/failpoint.h"

namespace cohort::collective {
namespace {

// In floats. Small enough that a block of gradients, parameters and two slots stays in a core's own
// cache between the pass that sums and the pass that updates.
constexpr std::size_t kUpdateBlock = 16384;

constexpr int kBlockBits = 24;
constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockBits) - 1;

// What a killed process has done ends between two of its instructions, and all before that is in
// memory: only the compiler must not change the order.
void keep_order() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

UpdateJournal::Shape journal_shape(int world, std::size_t floats, std::size_t vectors) {
  return {.world = world, .block = std::min(kUpdateBlock, floats), .vectors = vectors};
}

/// Whole cache lines, so that ranks do not write to the same one.
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

// The copy comes before the word that it is there.
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

HostUpdate::HostUpdate(HostReduction& group, std::vector<std::span<float>> changing,
                       const optimizer::Optimizer& optimizer, std::span<std::byte> journal)
    : group_(group), changing_(std::move(changing)), optimizer_(optimizer), scratch_(kUpdateBlock) {
  if (journal.empty()) return;
  journal_.emplace(group.rank(), journal_shape(group.world(), floats(), changing_.size()), journal);
}

std::size_t HostUpdate::journal_bytes(int world, std::size_t floats, std::size_t vectors) {
  return UpdateJournal::bytes_needed(journal_shape(world, floats, vectors));
}

std::size_t HostUpdate::Blocks::count() const {
  return (segment_.size() + kUpdateBlock - 1) / kUpdateBlock;
}

Segment HostUpdate::Blocks::operator[](std::size_t index) const {
  const std::size_t begin = segment_.begin + index * kUpdateBlock;
  return {begin, std::min(begin + kUpdateBlock, segment_.end)};
}

// Of each vector the floats of one block.
UpdateJournal::Vectors HostUpdate::cut(Segment block) {
  parts_.clear();
  for (const auto vector : changing_) parts_.push_back(vector.subspan(block.begin, block.size()));
  return parts_;
}

std::span<const float> HostUpdate::sum(Segment block) {
  return sum_into(block, std::span(scratch_).first(block.size()));
}

std::span<const float> HostUpdate::sum_in_place(Segment block) {
  return sum_into(block, group_.contribution(group_.rank()).subspan(block.begin, block.size()));
}

std::span<const float> HostUpdate::sum_into(Segment block, std::span<float> target) {
  if (group_.world() == 1) return group_.contribution(0).subspan(block.begin, block.size());
  group_.sum_contributions(block, target);
  bytes_read_ += target.size_bytes() * static_cast<std::size_t>(group_.world() - 1);
  return target;
}

void HostUpdate::begin(std::uint64_t number, const UpdateJournal::Plan& plan) {
  if (journal_) journal_->begin(number, plan);
}

void HostUpdate::apply(Segment block, std::span<const float> gradients,
                       const optimizer::UpdateScalars& scalars) {
  failpoint("allreduce.in-update");
  const UpdateJournal::Vectors parts = cut(block);
  if (journal_) journal_->keep(parts);
  optimizer_.update(parts.front(), gradients, parts.subspan(1), scalars);
  failpoint("allreduce.in-block");
  if (journal_) journal_->done();
}

// Ranks are at most one update apart, since a barrier is between two: whoever has not begun the
// newest one has done all before it.
std::optional<UpdateJournal::Progress> HostUpdate::finish_begun(std::uint64_t after) {
  if (!journal_) return std::nullopt;
  UpdateJournal::Progress begun;
  for (int rank = 0; rank < group_.world(); ++rank) {
    const auto progress = journal_->progress(rank);
    if (progress.number > begun.number) begun = progress;
  }
  if (begun.number <= after) return std::nullopt;
  for (int rank = 0; rank < group_.world(); ++rank) finish_part_of(rank, begun);
  return begun;
}

void HostUpdate::finish_part_of(int rank, const UpdateJournal::Progress& begun) {
  const Blocks blocks(segment_of(floats(), group_.world(), rank));
  auto theirs = journal_->acting_for(rank);
  if (theirs.progress(rank).number != begun.number) theirs.begin(begun.number, begun.plan);
  const auto progress = theirs.progress(rank);
  for (std::size_t i = progress.blocks; i < blocks.count(); ++i) {
    const UpdateJournal::Vectors parts = cut(blocks[i]);
    if (progress.in_block && i == progress.blocks) {
      theirs.restore(rank, parts);
    } else {
      theirs.keep(parts);
    }
    optimizer_.update(parts.front(), sum_for(rank, blocks[i], begun.plan), parts.subspan(1),
                      begun.plan.scalars);
    failpoint("allreduce.in-carry");
    theirs.done();
  }
}

// This block of the sum of all gradients, as its owner would have it.
std::span<const float> HostUpdate::sum_for(int rank, Segment block,
                                           const UpdateJournal::Plan& plan) {
  if (plan.summed) return group_.contribution(rank).subspan(block.begin, block.size());
  const auto sums = std::span(scratch_).first(block.size());
  group_.sum_contributions(block, sums);
  return sums;
}

}  // namespace cohort::collective
