#include "collective/algorithms.h"

#include <ranges>

#include "base/names.h"

namespace cohort::collective {
namespace {

// The choice that "auto" makes.

/// Up to this many elements the time goes into starting messages, not into moving bytes.
constexpr std::size_t kSmallCount = 8192;

/// Up to this many ranks a rank can well serve all others at once.
constexpr int kFewRanks = 8;

// By the two things that a sum costs: messages, each of which has a price however short it is, and
// bytes, of which a ring sends the fewest. Every rank picks for itself and must come to the same,
// so it is a function of what all know: world, count, hosts.
std::string_view pick_all_reduce(int world, std::size_t count) {
  if (count > kSmallCount) return "ring";
  return world <= kFewRanks ? "direct" : "tree";
}

std::string_view pick_for_segments(int world, std::size_t count) {
  return count > kSmallCount || world > kFewRanks ? "ring" : "direct";
}

using ScheduleMaker = Schedule (*)(int rank, int world, std::size_t count);

/// A row that also knows how to make the schedules.
struct Algorithm : AlgorithmRow {
  ScheduleMaker all_reduce;
  ScheduleMaker reduce_scatter = nullptr;  ///< And all_gather: null where ranks own no segments.
  ScheduleMaker all_gather = nullptr;
};

const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> all = {
      {{"ring", "every rank sends to the next one: best for large buffers"},
       ring_all_reduce,
       ring_reduce_scatter,
       ring_all_gather},
      {{"direct", "everyone to everyone: best for small buffers and few ranks"},
       direct_all_reduce,
       direct_reduce_scatter,
       direct_all_gather},
      {{"tree", "up a tree and down again: best for small buffers and many ranks"},
       tree_all_reduce},
  };
  return all;
}

const std::string kAuto = "auto";

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.push_back(kAuto);
  return names;
}

bool has_segments(const Algorithm& algorithm) {
  return algorithm.reduce_scatter != nullptr;
}

}  // namespace

std::vector<AlgorithmRow> algorithm_table() {
  return {algorithms().begin(), algorithms().end()};
}

const std::vector<std::string>& all_reduce_algorithms() {
  static const std::vector<std::string> names = with_auto(names_of(algorithms()));
  return names;
}

const std::vector<std::string>& segment_algorithms() {
  static const std::vector<std::string> names =
      with_auto(names_of(algorithms() | std::views::filter(has_segments)));
  return names;
}

Schedule all_reduce_schedule(std::string_view algorithm, int rank, int world, std::size_t count) {
  check_known("all-reduce algorithm", algorithm, all_reduce_algorithms());
  if (algorithm == kAuto) algorithm = pick_all_reduce(world, count);
  return row_named("algorithm", algorithm, algorithms()).all_reduce(rank, world, count);
}

Schedule all_reduce_schedule(std::string_view algorithm, int rank, std::span<const int> hosts,
                             std::size_t count) {
  if (algorithm == kAuto && count > kSmallCount && even_hosts(hosts)) {
    return hosts_all_reduce(rank, hosts, count);
  }
  return all_reduce_schedule(algorithm, rank, static_cast<int>(hosts.size()), count);
}

Schedule reduce_scatter_schedule(std::string_view algorithm, int rank, int world,
                                 std::size_t count) {
  check_known("reduce-scatter algorithm", algorithm, segment_algorithms());
  if (algorithm == kAuto) algorithm = pick_for_segments(world, count);
  return row_named("algorithm", algorithm, algorithms()).reduce_scatter(rank, world, count);
}

Schedule all_gather_schedule(std::string_view algorithm, int rank, int world, std::size_t count) {
  check_known("all-gather algorithm", algorithm, segment_algorithms());
  if (algorithm == kAuto) algorithm = pick_for_segments(world, count);
  return row_named("algorithm", algorithm, algorithms()).all_gather(rank, world, count);
}

}  // namespace cohort::collective
