#include "collective/collectives.h"

#include "base/fail.h"
#include "collective/dissemination.h"
#include "collective/make_schedule.h"
#include "collective/tree.h"

namespace cohort {
namespace {

void run(Executor& executor, const Schedule& schedule, std::span<float> buffer,
         const CollectiveOptions& options) {
  executor.run(schedule, buffer, options.tag, options.deadline);
}

void check_root(int root, int world) {
  if (root >= 0 && root < world) return;
  fail(ErrorCode::invalid, "rank {} cannot be the root: the group's ranks are 0 to {}", root,
       world - 1);
}

}  // namespace

void all_reduce(Executor& executor, std::span<float> buffer, const CollectiveOptions& options) {
  run(executor,
      all_reduce_schedule(options.algorithm, executor.rank(), executor.world(), buffer.size()),
      buffer, options);
}

Segment reduce_scatter(Executor& executor, std::span<float> buffer,
                       const CollectiveOptions& options) {
  run(executor,
      reduce_scatter_schedule(options.algorithm, executor.rank(), executor.world(), buffer.size()),
      buffer, options);
  return segment_of(buffer.size(), executor.world(), executor.rank());
}

void all_gather(Executor& executor, std::span<float> buffer, const CollectiveOptions& options) {
  run(executor,
      all_gather_schedule(options.algorithm, executor.rank(), executor.world(), buffer.size()),
      buffer, options);
}

void reduce(Executor& executor, std::span<float> buffer, int root,
            const CollectiveOptions& options) {
  check_root(root, executor.world());
  run(executor, tree_reduce(executor.rank(), executor.world(), buffer.size(), root), buffer,
      options);
}

void broadcast(Executor& executor, std::span<float> buffer, int root,
               const CollectiveOptions& options) {
  check_root(root, executor.world());
  run(executor, tree_broadcast(executor.rank(), executor.world(), buffer.size(), root), buffer,
      options);
}

void barrier(Executor& executor, const CollectiveOptions& options) {
  run(executor, dissemination_barrier(executor.rank(), executor.world()), {}, options);
}

}  // namespace cohort
