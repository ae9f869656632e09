#include "collective/collectives.h"

#include "base/fail.h"
#include "collective/algorithms.h"

namespace cohort::collective {
namespace {

/// The most that others can make a rank allocate.
constexpr std::size_t kMostGatheredBytes = std::size_t{1} << 30;

void run(Executor& executor, const Schedule& schedule, Elements buffer,
         const CollectiveOptions& options) {
  executor.run(schedule, buffer, options.tag, options.deadline);
}

void check_root(int root, int world) {
  if (root >= 0 && root < world) return;
  fail(ErrorCode::invalid, "rank {} cannot be the root: the group's ranks are 0 to {}", root,
       world - 1);
}

}  // namespace

// Each is one schedule, made by arithmetic, and its run. All ranks make the same call, and since a
// schedule follows from rank, world and size alone, they never have to agree on anything first.
void all_reduce(Executor& executor, Numbers buffer, const CollectiveOptions& options) {
  run(executor,
      all_reduce_schedule(options.algorithm, executor.rank(), executor.world(), buffer.size()),
      buffer, options);
}

Segment reduce_scatter(Executor& executor, Numbers buffer, const CollectiveOptions& options) {
  run(executor,
      reduce_scatter_schedule(options.algorithm, executor.rank(), executor.world(), buffer.size()),
      buffer, options);
  return segment_of(buffer.size(), executor.world(), executor.rank());
}

void all_gather(Executor& executor, Elements buffer, const CollectiveOptions& options) {
  run(executor,
      all_gather_schedule(options.algorithm, executor.rank(), executor.world(), buffer.size()),
      buffer, options);
}

void reduce(Executor& executor, Numbers buffer, int root, const CollectiveOptions& options) {
  check_root(root, executor.world());
  run(executor, tree_reduce(executor.rank(), executor.world(), buffer.size(), root), buffer,
      options);
}

void broadcast(Executor& executor, Elements buffer, int root, const CollectiveOptions& options) {
  check_root(root, executor.world());
  run(executor, tree_broadcast(executor.rank(), executor.world(), buffer.size(), root), buffer,
      options);
}

void barrier(Executor& executor, const CollectiveOptions& options) {
  run(executor, dissemination_barrier(executor.rank(), executor.world()), std::span<std::byte>(),
      options);
}

// The sizes are exchanged as a sum to which every rank gives its own size in its own place, and
// zero elsewhere.
std::vector<Segment> segments_to_gather(Executor& executor, std::size_t own, ElementType type,
                                        const CollectiveOptions& options) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(executor.world()));
  sizes[static_cast<std::size_t>(executor.rank())] = static_cast<std::int64_t>(own);
  all_reduce(executor, sizes, options);

  const std::size_t most = kMostGatheredBytes / size_of(type);
  std::vector<Segment> segments;
  std::size_t end = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || static_cast<std::size_t>(size) > most - end) {
      fail(ErrorCode::corrupt, "rank {} gives {} {} to be gathered, too many", segments.size(),
           size, plural_of(type));
    }
    segments.push_back({end, end + static_cast<std::size_t>(size)});
    end = segments.back().end;
  }
  return segments;
}

void gather_segments(Executor& executor, Elements buffer, std::span<const Segment> segments,
                     const CollectiveOptions& options) {
  run(executor, direct_all_gather_of(executor.rank(), segments), buffer, options);
}

}  // namespace cohort::collective
