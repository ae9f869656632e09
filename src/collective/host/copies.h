#pragma once

#include <cstddef>
#include <span>

#include "collective/elements.h"
#include "collective/reduce_kernel.h"

namespace cohort::collective {

/// An array of which every rank of a host has a copy of its own, in memory that all of them have
/// mapped: the copies stand one behind the other, `stride` bytes apart.
///
///   first                    stride                 2 * stride
///   [ rank 0's copy ]  …     [ rank 1's copy ]  …   [ rank 2's copy ]  …
///
/// Collectives on such arrays need no stages: what another rank has is read where it stands. A
/// barrier has to be passed before, after which nobody but these functions touches the copies, and
/// one afterwards.
struct Copies {
  Elements first;  ///< Rank 0's.
  std::size_t stride = 0;

  std::byte* of(int rank) const {
    return first.bytes().data() + static_cast<std::size_t>(rank) * stride;
  }
};

/// One rank's part of an all-reduce of several arrays of one type: of their elements, one array
/// after the other, it owns a segment, and writes the reduction of all copies of that to all copies,
/// divided by `divisor`. In the order of the ranks and rounded once, so the bits are those of
/// HostExchange::all_reduce(). The arrays do not overlap.
void reduce_copies(std::span<const Copies> arrays, int rank, int world, Reduction how, int divisor);

}  // namespace cohort::collective
