#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "collective/executor.h"

namespace cohort::collective {

/// The collectives as calls. Every rank of the executor's transport makes the same calls in the
/// same order, with the same sizes, types and options. They block until this rank's part is done.
/// They make their schedule anew each time; who runs one size over and over keeps the schedule and
/// calls Executor::run. For errors see there.
///
///   ranks 0, 1, 2 have                     and end with
///   all_reduce           [a]  [b]  [c]     [a+b+c]  [a+b+c]  [a+b+c]
///   reduce_scatter       [a]  [b]  [c]     each its segment of a+b+c
///   all_gather           [a…] [.b.] […c]   [a b c]  [a b c]  [a b c]     segments of equal size
///   gather               [aa] []   [c]     [aa] [] [c], each of them     sizes as they come
///   broadcast from 1      …   [b]   …      [b]      [b]      [b]
///   reduce to 1          [a]  [b]  [c]      …       [a+b+c]   …

struct CollectiveOptions {
  Deadline deadline;
  transport::Tag tag = 0;          ///< Of all messages; another one for calls at the same time.
  std::string algorithm = "auto";  ///< A name that algorithms.h knows.
};

/// Replaces the buffer by the sum over the ranks: the same bits on all.
void all_reduce(Executor& executor, Numbers buffer, const CollectiveOptions& options);

/// Makes this rank's segment the sum over the ranks, and returns that segment; the rest of the
/// buffer is undefined.
Segment reduce_scatter(Executor& executor, Numbers buffer, const CollectiveOptions& options);

/// Fills the buffer with the segment of every rank, which each has in its place.
void all_gather(Executor& executor, Elements buffer, const CollectiveOptions& options);

/// Makes the root's buffer the sum over the ranks; the other buffers are undefined. Always a tree.
void reduce(Executor& executor, Numbers buffer, int root, const CollectiveOptions& options);

/// Copies the root's buffer to all. Always a tree.
void broadcast(Executor& executor, Elements buffer, int root, const CollectiveOptions& options);

/// What every rank gives, by rank; each gives as much as it likes, of the same type. Throws
/// Error(corrupt) when that is more than 1 GiB altogether, which no use of it needs: a size from a
/// broken peer must not become an allocation.
template <Element T>
std::vector<std::vector<T>> gather(Executor& executor, std::span<const T> own,
                                   const CollectiveOptions& options);

/// Returns when every rank has called it.
void barrier(Executor& executor, const CollectiveOptions& options);

/// The two halves of gather(): where what each rank gives stands in a buffer of all, then the
/// buffer filled, of which this rank's own part is there.
std::vector<Segment> segments_to_gather(Executor& executor, std::size_t own, ElementType type,
                                        const CollectiveOptions& options);
void gather_segments(Executor& executor, Elements buffer, std::span<const Segment> segments,
                     const CollectiveOptions& options);

template <Element T>
std::vector<std::vector<T>> gather(Executor& executor, std::span<const T> own,
                                   const CollectiveOptions& options) {
  const auto segments = segments_to_gather(executor, own.size(), element_type<T>(), options);
  std::vector<T> buffer(segments.back().end);
  const std::span<T> all = buffer;
  const Segment mine = segments[static_cast<std::size_t>(executor.rank())];
  std::ranges::copy(own, all.subspan(mine.begin).begin());
  gather_segments(executor, all, segments, options);

  std::vector<std::vector<T>> by_rank;
  for (const Segment& segment : segments) {
    const auto part = all.subspan(segment.begin, segment.size());
    by_rank.emplace_back(part.begin(), part.end());
  }
  return by_rank;
}

}  // namespace cohort::collective
