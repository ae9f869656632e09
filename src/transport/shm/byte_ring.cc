#include "transport/shm/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace cohort {

namespace {

/// The bytes at a position of the stream, up to the end of the ring's memory. `start` changes only
/// while the ring is empty, when nobody has anything to read, and is published with `written`.
std::span<std::byte> from(const RingMemory& ring, std::uint64_t position) {
  const std::uint64_t start = ring.counters->start.load(std::memory_order_relaxed);
  return ring.bytes.subspan((position - start) & (ring.bytes.size() - 1));
}

void copy(std::span<std::byte> to, std::span<const std::byte> source) {
  if (!source.empty()) std::memcpy(to.data(), source.data(), source.size());
}

}  // namespace

RingWriter::RingWriter(RingMemory ring)
    : ring_(ring), written_(ring.counters->written.load(std::memory_order_relaxed)) {}

std::size_t RingWriter::room() {
  const std::uint64_t read = ring_.counters->read.load(std::memory_order_acquire);
  return ring_.bytes.size() - static_cast<std::size_t>(written_ - read);
}

std::size_t RingWriter::write(std::span<const std::byte> bytes) {
  const std::size_t free = room();
  if (free == ring_.bytes.size()) ring_.counters->start.store(written_, std::memory_order_relaxed);
  const std::size_t count = std::min(bytes.size(), free);
  const auto place = from(ring_, written_);
  const std::size_t before_wrap = std::min(count, place.size());
  copy(place, bytes.first(before_wrap));
  copy(ring_.bytes, bytes.subspan(before_wrap, count - before_wrap));
  written_ += count;
  return count;
}

void RingWriter::publish() {
  ring_.counters->written.store(written_, std::memory_order_release);
}

RingReader::RingReader(RingMemory ring)
    : ring_(ring), read_(ring.counters->read.load(std::memory_order_relaxed)) {}

std::size_t RingReader::available() {
  const std::uint64_t written = ring_.counters->written.load(std::memory_order_acquire);
  return static_cast<std::size_t>(written - read_);
}

std::size_t RingReader::read(std::span<std::byte> bytes) {
  const std::size_t count = std::min(bytes.size(), available());
  const auto place = from(ring_, read_);
  const std::size_t before_wrap = std::min(count, place.size());
  copy(bytes, place.first(before_wrap));
  copy(bytes.subspan(before_wrap), ring_.bytes.first(count - before_wrap));
  read_ += count;
  return count;
}

void RingReader::publish() {
  ring_.counters->read.store(read_, std::memory_order_release);
}

}  // namespace cohort
