#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collective/elements.h"
#include "collective/host/host_reduction.h"
#include "collective/reduce_kernel.h"

namespace cohort::collective {

/// Collectives between ranks of one host on memory that they do not share: a user's tensors.
///
/// Vocabulary. Every rank has two *stages* in shared memory, which it alone writes. The ranks meet in
/// *rounds*: in each, every rank puts a *piece* of what it gives on one of its stages, all pass a
/// barrier, and take from the others' stages what is for them. The next round uses the other stage,
/// so one barrier a round is enough: whoever has come to round n + 1 has taken all of round n, and
/// the stage of round n is not written again before round n + 2.
///
///              round 0          barrier  round 1                      barrier  round 2
///   rank 0     stage 0: piece 0    |     take 0; stage 1: piece 1        |     take 1; stage 0: …
///   rank 1     stage 0: piece 0    |     take 0; stage 1: piece 1        |     take 1; stage 0: …
///
/// Pieces are so small that a stage stays in the cache: what costs time is reading and writing the
/// tensors themselves, once. A sum is made once, by the rank that owns the segment, in the order of
/// the ranks, and copied from there: the same bits on all.
///
/// One object per rank, used by one thread, but for leave(). All ranks make the same calls with the
/// same sizes. They throw as HostBarrier::arrive_and_wait() does.
class HostExchange {
 public:
  /// What goes with begin(), in bytes: the record, and so little content that it needs no rounds of
  /// its own.
  static constexpr std::size_t kRecordBytes = 256;
  static constexpr std::size_t kSmallBytes = 16 << 10;

  static std::size_t bytes_needed(int world);

  /// `region` is zeroed, 64-byte aligned memory of bytes_needed(world), the same for all ranks.
  HostExchange(int rank, int world, std::span<std::byte> region, os::PeerWatch watch,
               os::WaitPolicy policy);
  ~HostExchange() { leave(); }
  HostExchange(const HostExchange&) = delete;
  HostExchange& operator=(const HostExchange&) = delete;

  int rank() const { return rank_; }
  int world() const { return world_; }

  /// A round in which every rank shows a record, and content of at most kSmallBytes, to all. They
  /// can be read until the next call.
  void begin(std::span<const std::byte> record, std::span<const std::byte> content,
             Deadline deadline);
  std::span<const std::byte> record_of(int rank) const;
  const std::byte* content_of(int rank) const;

  /// A round in which nothing is shown: a barrier.
  void pass(Deadline deadline, const char* doing);

  /// Replaces the elements by their reduction over the ranks, divided by `divisor`.
  void all_reduce(Elements elements, Reduction how, int divisor, Deadline deadline);

  /// `out` becomes the reduction of everybody's part for this rank: `given` has a part for every
  /// rank, one after the other, each as large as `out`.
  void reduce_scatter(Elements given, Elements out, Reduction how, int divisor, Deadline deadline);

  /// Copies the root's bytes to all.
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline);

  /// Fills taken[r] with what rank r gives; all ranks know all sizes. taken[rank()] too.
  void all_gather(std::span<const std::byte> given, std::span<const std::span<std::byte>> taken,
                  Deadline deadline);

  /// Both have a part for every rank, all of one size: part r of `taken` becomes what rank r has in
  /// its part for this rank.
  void all_to_all(std::span<const std::byte> given, std::span<std::byte> taken, Deadline deadline);

  /// Any thread: this rank will not come again, and what it waits for in another thread ends with an
  /// Error.
  void leave() noexcept { barrier_.leave(); }

 private:
  /// Of the round that begins with the next pass(); of any rank, of the round after the last pass().
  std::byte* own_stage() const { return stage(rank_, rounds_); }
  const std::byte* stage_of(int rank) const { return stage(rank, rounds_ - 1); }
  std::byte* stage(int rank, std::size_t round) const;
  /// The sources of a sum in the order of the ranks: own, and what stands at `offset` of the others'
  /// stages.
  std::span<const std::byte* const> sources(const std::byte* own, std::size_t offset);

  int rank_;
  int world_;
  std::span<std::byte> region_;
  HostBarrier barrier_;
  std::size_t rounds_ = 0;  // Passed so far.
  std::vector<const std::byte*> sources_;
};

}  // namespace cohort::collective
