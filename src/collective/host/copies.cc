#include "collective/host/copies.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collective/schedule.h"

namespace cohort::collective {
namespace {

/// What is summed at a time: the result is still in the nearest cache when it is copied.
constexpr std::size_t kBlockOfCopies = 8 << 10;

/// Of one array, the elements from `begin` on.
void reduce_part(const Copies& array, Segment part, int world, Reducer reducer, int divisor,
                 std::span<const std::byte*> sources) {
  const std::size_t width = size_of(reducer.type);
  const std::size_t end = part.end * width;
  for (std::size_t begin = part.begin * width; begin < end; begin += kBlockOfCopies) {
    const std::size_t size = std::min(kBlockOfCopies, end - begin);
    for (int rank = 0; rank < world; ++rank) {
      sources[static_cast<std::size_t>(rank)] = array.of(rank) + begin;
    }
    const std::span<std::byte> out(array.of(0) + begin, size);
    reduce_of(reducer, out, sources);
    divide({out, reducer.type}, divisor);
    for (int rank = 1; rank < world; ++rank) {
      std::memcpy(array.of(rank) + begin, out.data(), size);
    }
  }
}

}  // namespace

void reduce_copies(std::span<const Copies> arrays, int rank, int world, Reduction how,
                   int divisor) {
  std::size_t elements = 0;
  for (const Copies& array : arrays) elements += array.first.size();
  const Segment mine = segment_of(elements, world, rank);
  std::vector<const std::byte*> sources(static_cast<std::size_t>(world));
  std::size_t before = 0;  // Elements of the arrays that came before.
  for (const Copies& array : arrays) {
    const std::size_t size = array.first.size();
    const Segment part{std::clamp(mine.begin, before, before + size) - before,
                       std::clamp(mine.end, before, before + size) - before};
    reduce_part(array, part, world, {array.first.type(), how}, divisor, sources);
    before += size;
  }
}

}  // namespace cohort::collective
