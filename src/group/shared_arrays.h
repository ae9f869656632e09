#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/host/copies.h"
#include "group/array.h"
#include "transport/engine.h"

namespace cohort::group {

/// Memory that the ranks of one host have handed out to their user, and all of which all of them have
/// mapped. It consists of *slabs*, which all ranks make together, each cut into *pieces* of one size,
/// of which every rank has its own copy:
///
///   slab 0   [ rank 0's copy:  piece 0 | piece 1 | …  ] [ rank 1's copy:  piece 0 | piece 1 | … ]
///   slab 1   [ rank 0's copy:  piece 2 ] [ rank 1's copy:  piece 2 ]
///
/// All ranks make the same calls, so they have the same slabs. What they do not do alike is to let go
/// of pieces, on any thread, at any time. So a piece is given out again where all ranks have let go of
/// it, which they find out by showing each other what each has let go of so far (let_go()). Slabs of
/// which nothing is used are kept for later, up to as many bytes as are in use.
///
/// One thread at a time, but for letting go. Memory that was handed out may outlive this object.
class SharedArrays {
 public:
  /// Of an engine whose ranks share memory.
  explicit SharedArrays(std::shared_ptr<transport::Engine> engine);

  /// For every piece, in an order that is the same on all ranks: 1 where this rank does not use it.
  std::vector<std::byte> let_go() const;

  /// A piece of at least so many bytes: the first that fits of those that are 1 in `free`, else of a
  /// new slab. `free` is what let_go() was on all ranks, combined by "and"; all ranks give the same.
  /// Nothing where there is none and `room`, the bytes that every rank may take, is too little.
  std::optional<Memory> take(std::size_t bytes, std::span<const std::byte> free, std::uint64_t room,
                             Deadline deadline);

  /// A number for where the arrays stand in this memory: the same on two ranks if, and only if, they
  /// stand in the same places of their copies. 0: one of them does not stand in it, or two of them
  /// overlap, or there is nothing in any. Then `copies` says where.
  std::uint64_t find(std::span<const Array> arrays, std::vector<collective::Copies>& copies) const;

 private:
  struct Slab;

  static Memory hand_out(const std::shared_ptr<Slab>& slab, std::size_t piece, std::size_t bytes);
  std::shared_ptr<Slab> make_slab(std::size_t piece_bytes, Deadline deadline);
  std::size_t give_back_unused(std::span<const std::byte> free, std::size_t needed);
  const Slab* slab_of(std::span<const std::byte> bytes) const;

  const std::shared_ptr<transport::Engine> engine_;
  std::vector<std::shared_ptr<Slab>> slabs_;  // Of every rank in the same order.
  std::uint64_t made_ = 0;
};

}  // namespace cohort::group
