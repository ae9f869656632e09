#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "os/shared_wait.h"

namespace cohort::transport {

/// Rings: streams of bytes through shared memory, one for every ordered pair of ranks.
///
/// A ring has one writer and one reader, each a rank. Both count the bytes of the stream from its
/// beginning, and the counts only grow, so "full" and "empty" need no flag:
///
///        bytes already read        on their way          free
///   …────────────────────────┬───────────────────────┬──────────▶ the stream
///                           read                  written
///                 room = size - (written - read)    available = written - read
///
/// The byte at position p of the stream stands at (p - start) mod size of the ring's memory. A ring
/// that was emptied goes on at its first byte: the writer then sets `start` to `written`. So a pair
/// that only exchanges small messages touches one page, however often.
///
/// Who stores which counter, and what the other side knows once it has loaded it:
///
///   written   the writer, in publish(), release     loaded with acquire: the bytes before it are
///                                                   there, and the `start` they were placed by
///   start     the writer, while the ring is empty   relaxed, because it travels with `written`
///   read      the reader, in publish(), release     loaded with acquire: the reader's copies are
///                                                   made, and their room may be written again
///
/// Nobody waits or wakes here: whoever has published rings the other rank's bell (RankState). A
/// process that dies between copying and publishing leaves a ring in which those bytes were never
/// written.
///
/// The other end writes to the same memory, and need not write what a ring can have. So each end
/// keeps its own count to itself, loads the other's once for each copy, and looks whether more is on
/// its way than the ring can hold. Such a ring is broken for good: it has no room and no bytes.

/// Zeroed memory is an empty ring. Two cache lines, because each side writes its own.
struct RingCounters {
  alignas(64) std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> start;
  alignas(64) std::atomic<std::uint64_t> read;
};

/// The memory of a ring; the size of `bytes` is a power of two.
struct RingMemory {
  RingCounters* counters;
  std::span<std::byte> bytes;
};

/// The one writer of a ring.
class RingWriter {
 public:
  explicit RingWriter(RingMemory ring);

  /// Bytes that fit now.
  std::size_t room();
  /// Whether the reader has ever counted what cannot be.
  bool is_broken() const { return broken_; }

  /// Copies as many of `bytes` as fit and returns how many. The reader sees them after publish().
  std::size_t write(std::span<const std::byte> bytes);
  void publish();

 private:
  RingMemory ring_;
  std::uint64_t written_;  // At or ahead of the shared counter, which publish() brings up to it.
  bool broken_ = false;
};

/// The one reader of a ring.
class RingReader {
 public:
  explicit RingReader(RingMemory ring);

  /// Bytes that are there now.
  std::size_t available();
  /// Whether the writer has ever counted what cannot be.
  bool is_broken() const { return broken_; }

  /// Copies as many bytes as are there and fit and returns how many. The writer may reuse their
  /// room after publish().
  std::size_t read(std::span<std::byte> bytes);
  void publish();

 private:
  RingMemory ring_;
  std::uint64_t read_;  // At or ahead of the shared counter, which publish() brings up to it.
  bool broken_ = false;
};

/// What every rank shows to the others. Only the rank itself sets `closed`, to 1 and never back.
struct RankState {
  alignas(64) os::SharedEvent bell;  ///< Rung when a ring from or to the rank has moved.
  alignas(64) std::atomic<std::uint32_t> closed;
};

/// Where things stand in the region of a group of n ranks:
///
///   ┌───────────────┬──────────────────────┬───────────────────────┬──────────────────────┐
///   │ n RankStates  │ n × n RingCounters   │ 2 n rings, near_bytes │ n × n rings, far     │
///   └───────────────┴──────────────────────┴───────────────────────┴──────────────────────┘
///
/// Rings are as large as asked for while all of them together take no more than `kAllRings`. In
/// larger groups only ranks that stand side by side (rank ± 1, round the end) keep such *near*
/// rings, because that is where the ring algorithm sends all it has; all other pairs have *far*
/// rings, which share what `kAllRings` allows. So a group's memory grows with its ranks and not
/// with their square, also where everybody sends to everybody. Places of far rings that are never
/// used (of a rank with itself and with its neighbours) are left in, which keeps the arithmetic
/// simple: pages that nobody touches cost nothing where the region takes them on use.
class RingLayout {
 public:
  static constexpr std::size_t kAllRings = std::size_t{64} << 20;

  /// `ring_bytes` is a power of two.
  RingLayout(int ranks, std::size_t ring_bytes);

  std::size_t total() const { return total_; }

  RankState& state(std::byte* region, int rank) const;
  RingMemory ring(std::byte* region, int from, int to) const;

 private:
  /// 0: `to` is the rank after `from`; 1: the one before; 2: they are not side by side.
  std::size_t direction(std::size_t from, std::size_t to) const;

  std::size_t ranks_;
  std::size_t near_bytes_;
  std::size_t far_bytes_;
  std::size_t counters_at_;  // This and the next three are offsets into the region, in bytes.
  std::size_t near_at_;
  std::size_t far_at_;
  std::size_t total_;
};

}  // namespace cohort::transport
