#pragma once

#include <span>
#include <string>

#include "collective/executor.h"

namespace cohort {

/// The collectives as calls. Every rank of the executor's transport makes the same calls with the
/// same sizes and options. They make their schedule anew each time; who runs one size over and over
/// keeps the schedule and calls Executor::run. For errors see there.

struct CollectiveOptions {
  Deadline deadline;
  Tag tag = 0;
  std::string algorithm = "auto";  ///< A name that make_schedule.h knows.
};

/// Replaces the buffer by the sum over the ranks: the same bits on all.
void all_reduce(Executor& executor, std::span<float> buffer, const CollectiveOptions& options);

/// Makes this rank's segment the sum over the ranks, and returns that segment; the rest of the
/// buffer is undefined.
Segment reduce_scatter(Executor& executor, std::span<float> buffer,
                       const CollectiveOptions& options);

/// Fills the buffer with the segment of every rank, which each has in its place.
void all_gather(Executor& executor, std::span<float> buffer, const CollectiveOptions& options);

/// Makes the root's buffer the sum over the ranks; the other buffers are undefined. Always a tree.
void reduce(Executor& executor, std::span<float> buffer, int root,
            const CollectiveOptions& options);

/// Copies the root's buffer to all. Always a tree.
void broadcast(Executor& executor, std::span<float> buffer, int root,
               const CollectiveOptions& options);

/// Returns when every rank has called it.
void barrier(Executor& executor, const CollectiveOptions& options);

}  // namespace cohort
