#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <span>
#include <stdexcept>

#include "base/fail.h"
#include "base/names.h"
#include "base/vectorize.h"
#include "bench/bench_worker.h"
#include "bench/measured_process.h"
#include "bench/timing.h"
#include "collective/host/host_reduction.h"
#include "os/memory.h"

namespace cohort::bench {
namespace {

// `cohort bench worker sum`: for each size all ranks are forked, bound to a core, and make the same
// calls on memory that all of them map. Before anything is timed one sum is checked.

constexpr double kSumTimeoutSeconds = 60;

/// One rank's part in timing one size. Returns the seconds of a sum.
using RankTiming =
    std::function<double(int rank, int world, const TimingPlan&, const os::SharedMemory&)>;

/// A way to sum: how much shared memory all its ranks need, and what each of them does.
struct SumContestant {
  std::function<std::size_t(int world, std::size_t count)> bytes_needed;
  RankTiming time;
};

// ---- The bare loop: rank 0's array += all others', each rank a part of it.

/// A count of arrivals per rank, each on a cache line of its own. Only ever spins.
struct alignas(64) Arrivals {
  std::atomic<unsigned> count;
};

/// Every rank raises its own count and waits until all others' are as high. The memory behind it
/// must be zero at first, and have room for an Arrivals of each rank.
class SpinBarrier {
 public:
  SpinBarrier(int rank, int world, std::byte* region)
      : rank_(rank), world_(world), arrivals_(reinterpret_cast<Arrivals*>(region)) {}

  void wait() {
    arrivals_[rank_].count.store(++passed_, std::memory_order_release);
    for (int peer = 0; peer < world_; ++peer) {
      while (arrivals_[peer].count.load(std::memory_order_acquire) < passed_) {
      }
    }
  }

 private:
  int rank_;
  int world_;
  Arrivals* arrivals_;
  unsigned passed_ = 0;
};

COHORT_VECTORIZE void add(float* __restrict sum, const float* __restrict values,
                          std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
}

constexpr std::size_t kBarrierBytes = 4096;

std::size_t bare_bytes(int world, std::size_t count) {
  return kBarrierBytes + static_cast<std::size_t>(world) * count * sizeof(float);
}

/// Nothing that sums between processes can be faster: no copy, no system call, and every rank adds
/// its part where the first array already is.
double time_bare(int rank, int world, const TimingPlan& plan, const os::SharedMemory& memory) {
  pin_to_core_of(rank);
  SpinBarrier barrier(rank, world, memory.data());
  auto* arrays = reinterpret_cast<float*>(memory.data() + kBarrierBytes);
  const auto array = [&](int of) { return arrays + static_cast<std::size_t>(of) * plan.count; };
  const collective::Segment mine = collective::segment_of(plan.count, world, rank);
  const auto sum = [&] {
    barrier.wait();
    for (int peer = 1; peer < world; ++peer) {
      add(array(0) + mine.begin, array(peer) + mine.begin, mine.size());
    }
    barrier.wait();
  };
  std::fill_n(array(rank), plan.count, contribution_of(rank));
  sum();
  check_sum(std::span(array(0), plan.count), world);
  barrier.wait();
  std::fill_n(array(rank), plan.count, 0.0F);  // The sum would otherwise grow without end.
  return seconds_per_call(plan.repeats, sum);
}

// ---- Cohort

std::size_t cohort_bytes(int world, std::size_t count) {
  return collective::HostReduction::bytes_needed({world, count, 0});
}

/// HostReduction, by which all-reduce in place sums gradients in a training, without the update.
/// The arrays lie where it wants them, as they do in a training.
double time_cohort(int rank, int world, const TimingPlan& plan, const os::SharedMemory& memory) {
  const auto policy = os::WaitPolicy::for_ranks(world, static_cast<int>(allowed_cores().size()));
  pin_to_core_of(rank);
  collective::HostReduction reduction(rank, {world, plan.count, 0}, {memory.data(), memory.size()},
                                      os::PeerWatch(), policy);
  const auto deadline = Deadline::in_seconds(kSumTimeoutSeconds);
  const auto sum = [&] { reduction.all_reduce(plan.count, deadline); };
  const auto own = reduction.contribution(rank);
  std::fill(own.begin(), own.end(), contribution_of(rank));
  check_sum(reduction.all_reduce(plan.count, deadline), world);
  reduction.barrier(deadline, "end of the check");
  std::fill(own.begin(), own.end(), 0.0F);  // The sum would otherwise grow without end.
  return seconds_per_call(plan.repeats, sum);
}

// ---- Both

/// Runs every rank in a process of its own; returns what rank 0 measured.
double time_sums(const SumContestant& contestant, int world, const TimingPlan& plan) {
  const auto memory = os::SharedMemory::create(contestant.bytes_needed(world, plan.count));
  const auto answer = os::SharedMemory::create(sizeof(double));
  for (int rank = 0; rank < world; ++rank) {
    in_child(fmt::format("rank {}", rank), [&] {
      const double seconds = contestant.time(rank, world, plan, memory);
      if (rank == 0) *reinterpret_cast<double*>(answer.data()) = seconds;
    });
  }
  await_children(world, "a rank of the measured sum failed");
  return *reinterpret_cast<const double*>(answer.data());
}

}  // namespace

void run_sum_worker(const std::vector<std::string>& words) {
  if (words.size() < 3) fail(ErrorCode::invalid, "usage: sum cohort|bare RANKS BYTES:REPEATS...");
  check_known("contestant", words[0], {"cohort", "bare"});
  const SumContestant contestant = words[0] == "bare" ? SumContestant{bare_bytes, time_bare}
                                                      : SumContestant{cohort_bytes, time_cohort};
  const int world = std::stoi(words[1]);
  const auto plans = parse_plans({words.begin() + 2, words.end()});
  std::vector<double> seconds;
  for (const auto& plan : plans) seconds.push_back(time_sums(contestant, world, plan));
  print_sums(plans, seconds);
}

}  // namespace cohort::bench
