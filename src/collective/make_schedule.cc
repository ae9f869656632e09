#include "collective/make_schedule.h"

#include "base/nearest_name.h"
#include "collective/direct.h"
#include "collective/ring.h"
#include "collective/tree.h"

namespace cohort {
namespace {

/// Up to this many elements the time goes into starting messages, not into moving bytes.
constexpr std::size_t kSmallCount = 8192;

/// Up to this many ranks a rank can well serve all others at once.
constexpr int kFewRanks = 8;

std::string_view pick_all_reduce(int world, std::size_t count) {
  if (count > kSmallCount) return "ring";
  return world <= kFewRanks ? "direct" : "tree";
}

std::string_view pick_for_segments(int world, std::size_t count) {
  return count > kSmallCount || world > kFewRanks ? "ring" : "direct";
}

}  // namespace

const std::vector<std::string>& all_reduce_algorithms() {
  static const std::vector<std::string> names = {"ring", "direct", "tree", "auto"};
  return names;
}

const std::vector<std::string>& segment_algorithms() {
  static const std::vector<std::string> names = {"ring", "direct", "auto"};
  return names;
}

Schedule all_reduce_schedule(std::string_view algorithm, int rank, int world, std::size_t count) {
  check_known("all-reduce algorithm", algorithm, all_reduce_algorithms());
  if (algorithm == "auto") algorithm = pick_all_reduce(world, count);
  if (algorithm == "ring") return ring_all_reduce(rank, world, count);
  if (algorithm == "direct") return direct_all_reduce(rank, world, count);
  return tree_all_reduce(rank, world, count);
}

Schedule reduce_scatter_schedule(std::string_view algorithm, int rank, int world,
                                 std::size_t count) {
  check_known("reduce-scatter algorithm", algorithm, segment_algorithms());
  if (algorithm == "auto") algorithm = pick_for_segments(world, count);
  if (algorithm == "ring") return ring_reduce_scatter(rank, world, count);
  return direct_reduce_scatter(rank, world, count);
}

Schedule all_gather_schedule(std::string_view algorithm, int rank, int world, std::size_t count) {
  check_known("all-gather algorithm", algorithm, segment_algorithms());
  if (algorithm == "auto") algorithm = pick_for_segments(world, count);
  if (algorithm == "ring") return ring_all_gather(rank, world, count);
  return direct_all_gather(rank, world, count);
}

}  // namespace cohort
