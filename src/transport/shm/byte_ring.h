#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort {

/// A stream of bytes from one writer to one reader through shared memory. Zeroed memory is an
/// empty ring. The counters only grow; they stand on two cache lines because each side writes its
/// own.
///
/// A ring that was emptied goes on at its first byte (`start` says at which byte of the stream that
/// was), so that a pair which only exchanges small messages touches one page, however often.
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

class RingWriter {
 public:
  explicit RingWriter(RingMemory ring);

  /// Bytes that fit now.
  std::size_t room();

  /// Copies as many of `bytes` as fit and returns how many. The reader sees them after publish().
  std::size_t write(std::span<const std::byte> bytes);
  void publish();

 private:
  RingMemory ring_;
  std::uint64_t written_;
};

class RingReader {
 public:
  explicit RingReader(RingMemory ring);

  /// Bytes that are there now.
  std::size_t available();

  /// Copies as many bytes as are there and fit and returns how many. The writer may reuse their
  /// room after publish().
  std::size_t read(std::span<std::byte> bytes);
  void publish();

 private:
  RingMemory ring_;
  std::uint64_t read_;
};

}  // namespace cohort
