#include "server/memory/work_area.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/fail.h"

namespace cohort::server {
namespace {

constexpr int kBits = 7;
constexpr std::uint8_t kMore = 1 << kBits;
constexpr std::size_t kMostBytes = 10;  // Of one number.

/// Small numbers of either sign become small ones without: 0, -1, 1, -2, … are 0, 1, 2, 3, …
std::uint64_t folded(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number) << 1;
  return number < 0 ? ~bits : bits;
}

std::int64_t unfolded(std::uint64_t bits) {
  const auto half = static_cast<std::int64_t>(bits >> 1);
  return (bits & 1) != 0 ? ~half : half;
}

[[noreturn]] void fail_corrupt() {
  fail(ErrorCode::corrupt, "a server's memory has no list of work that could be read");
}

/// Takes a number from the front of `bytes`.
std::uint64_t take_number(std::span<const std::byte>& bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), kMostBytes); ++i) {
    const auto byte = std::to_integer<std::uint8_t>(bytes[i]);
    number |= static_cast<std::uint64_t>(byte & (kMore - 1)) << (kBits * i);
    if (byte >= kMore) continue;
    bytes = bytes.subspan(i + 1);
    return number;
  }
  fail_corrupt();
}

}  // namespace

WorkArea::WorkArea(std::span<std::byte> memory) : memory_(memory) {}

/// A piece takes two numbers: how far its number is from the end of the one before, and who has it.
/// Both are mostly tiny, so they are written in groups of seven bits, the lowest first, each byte
/// but the last with its highest bit set: most pieces take two bytes. Returns where the next piece
/// stands.
std::size_t WorkArea::put(std::size_t at, const cluster::Claim& claim) {
  const auto room = pieces();
  if (room.size() < at || room.size() - at < 2 * kMostBytes) {
    fail(ErrorCode::no_space,
         "more work was handed out and never pushed than {} MiB can tell of; let workers push more "
         "often (strategy.every, strategy.local_steps)",
         room.size() >> 20);
  }
  const std::int64_t number = claim.step * header().parts + claim.part;
  for (std::uint64_t bits : {folded(number - *end_), folded(claim.taken_by)}) {
    for (; bits >= kMore; bits >>= kBits) {
      room[at++] = std::byte{static_cast<std::uint8_t>(bits | kMore)};
    }
    room[at++] = std::byte{static_cast<std::uint8_t>(bits)};
  }
  end_ = number + 1;
  return at;
}

void WorkArea::write(const cluster::WorkLeft& work) {
  header() = {.next = work.next, .parts = work.parts, .written = 0, .bytes = 0};
  end_ = 0;
  std::size_t at = 0;
  for (const cluster::Claim& piece : work.again) at = put(at, piece);
  header().written = header().bytes = at;
}

/// The bytes of the piece come first, then the one word that makes them count.
void WorkArea::note(const cluster::Claim& claim) {
  if (!end_) end_ = visit_pieces([](std::int64_t, int, bool) {});
  const std::size_t at = put(header().bytes, claim);
  // No other store may move across this one.
  std::atomic_ref(header().bytes).exchange(at, std::memory_order_acq_rel);
}

template <class Visit>
std::int64_t WorkArea::visit_pieces(Visit&& visit) const {
  const Header from = header();  // A copy: what is used is what was checked.
  if (from.bytes > pieces().size() || from.written > from.bytes) fail_corrupt();
  std::span<const std::byte> rest = pieces().first(from.bytes);
  const std::size_t noted = from.bytes - from.written;
  std::int64_t end = 0;
  while (!rest.empty()) {
    const bool was_noted = rest.size() <= noted;
    const auto distance = static_cast<std::uint64_t>(unfolded(take_number(rest)));
    const auto number = static_cast<std::int64_t>(static_cast<std::uint64_t>(end) + distance);
    if (number < 0 || number == std::numeric_limits<std::int64_t>::max()) fail_corrupt();
    visit(number, static_cast<int>(unfolded(take_number(rest))), was_noted);
    end = number + 1;
  }
  return end;
}

/// Pieces that write() left are `again` as it was. One noted since is either one of those, with a
/// new owner, or the next that nobody had.
cluster::WorkLeft WorkArea::read() const {
  const Header from = header();
  cluster::WorkLeft work{.next = from.next, .parts = from.parts, .again = {}};
  if (work.parts == 0) work.parts = 1;
  if (work.parts < 0) fail_corrupt();
  visit_pieces([&](std::int64_t number, int taken_by, bool was_noted) {
    const cluster::Claim piece{.step = number / work.parts,
                               .part = static_cast<int>(number % work.parts),
                               .taken_by = taken_by};
    if (was_noted && number < work.next) {  // Of `again`, where it stands already.
      const auto place = std::ranges::lower_bound(work.again, piece);
      if (place == work.again.end() || *place != piece) fail_corrupt();
      *place = piece;
      return;
    }
    if (was_noted && number != work.next++) fail_corrupt();
    work.again.push_back(piece);
  });
  return work;
}

}  // namespace cohort::server
