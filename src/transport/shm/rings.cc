#include "transport/shm/rings.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cohort::transport {
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

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSmallestFar = 512;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

/// What is left for each far ring, as a power of two; in a very large group the smallest ring all
/// the same, which then takes more than kAllRings together.
std::size_t far_ring_bytes(std::size_t ranks, std::size_t ring_bytes) {
  const std::size_t share = std::bit_floor(RingLayout::kAllRings / (ranks * ranks));
  return std::min(ring_bytes, std::max(share, kSmallestFar));
}

}  // namespace

RingWriter::RingWriter(RingMemory ring)
    : ring_(ring), written_(ring.counters->written.load(std::memory_order_relaxed)) {}

std::size_t RingWriter::room() {
  const std::uint64_t read = ring_.counters->read.load(std::memory_order_acquire);
  const std::uint64_t on_its_way = written_ - read;
  broken_ = broken_ || on_its_way > ring_.bytes.size();
  return broken_ ? 0 : ring_.bytes.size() - static_cast<std::size_t>(on_its_way);
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
  const std::uint64_t on_its_way = written - read_;
  broken_ = broken_ || on_its_way > ring_.bytes.size();
  return broken_ ? 0 : static_cast<std::size_t>(on_its_way);
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

RingLayout::RingLayout(int ranks, std::size_t ring_bytes)
    : ranks_(static_cast<std::size_t>(ranks)),
      near_bytes_(ring_bytes),
      far_bytes_(far_ring_bytes(ranks_, ring_bytes)),
      counters_at_(whole_pages(ranks_ * sizeof(RankState))),
      near_at_(whole_pages(counters_at_ + ranks_ * ranks_ * sizeof(RingCounters))),
      far_at_(near_at_ + 2 * ranks_ * near_bytes_),
      total_(far_at_ + ranks_ * ranks_ * far_bytes_) {}

RankState& RingLayout::state(std::byte* region, int rank) const {
  return reinterpret_cast<RankState*>(region)[rank];
}

std::size_t RingLayout::direction(std::size_t from, std::size_t to) const {
  if ((from + 1) % ranks_ == to) return 0;
  return (to + 1) % ranks_ == from ? 1 : 2;
}

RingMemory RingLayout::ring(std::byte* region, int from, int to) const {
  const auto sender = static_cast<std::size_t>(from);
  const auto receiver = static_cast<std::size_t>(to);
  const std::size_t pair = sender * ranks_ + receiver;
  auto* counters = reinterpret_cast<RingCounters*>(region + counters_at_) + pair;
  const std::size_t place = direction(sender, receiver);
  if (place < 2) {
    return {counters, {region + near_at_ + (2 * sender + place) * near_bytes_, near_bytes_}};
  }
  return {counters, {region + far_at_ + pair * far_bytes_, far_bytes_}};
}

}  // namespace cohort::transport
