#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cluster/work_board.h"

namespace cohort::server {

/// What is left to do, in memory that outlives its process: written whole now and then, and between
/// that noted piece by piece as it is handed out, at the same cost however much is under way. A
/// process that is killed in the middle of a note leaves what was there before it.
///
/// Pieces stand as bytes, one after the other: how far each is from the one behind the last, as a
/// number of seven bits a byte, lowest first, all but the last byte with the eighth bit set; its
/// sign is its lowest bit. Then in the same way who has it. Pieces that follow each other take two
/// bytes each, or three of many workers, however they are mixed between them.
class WorkArea {
 public:
  WorkArea() = default;
  /// `memory` is 8-byte aligned; zeroed, it says that nothing was done and nothing handed out.
  explicit WorkArea(std::span<std::byte> memory);

  /// `again` ascends. Throws Error(no_space) where the memory is too small.
  void write(const cluster::WorkLeft& work);

  /// A piece was handed out, of `again` or the next one. Throws Error(no_space). Only by whoever is
  /// the one to write here.
  void note(const cluster::Claim& claim);

  /// Throws Error(corrupt) for what was not written here.
  cluster::WorkLeft read() const;

  /// What is behind that was never touched.
  std::span<const std::byte> used() const {
    const std::uint64_t bytes = header().bytes;
    return memory_.first(sizeof(Header) + std::min<std::uint64_t>(bytes, pieces().size()));
  }

 private:
  struct Header {
    std::int64_t next;
    std::int64_t parts;
    std::uint64_t written;  ///< Bytes of the pieces that write() has left,
    std::uint64_t bytes;    ///< and with those noted since. Stored last.
  };

  Header& header() const { return *reinterpret_cast<Header*>(memory_.data()); }
  std::span<std::byte> pieces() const { return memory_.subspan(sizeof(Header)); }
  std::size_t put(std::size_t at, const cluster::Claim& claim);
  /// visit(its number, who has it, whether it was noted) for every piece. Returns the number behind
  /// the last.
  template <class Visit>
  std::int64_t visit_pieces(Visit&& visit) const;

  std::span<std::byte> memory_;
  std::optional<std::int64_t> end_;  // The number behind that of the last piece, once looked for.
};

}  // namespace cohort::server
