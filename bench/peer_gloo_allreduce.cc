// Gloo's sum of float32 arrays over TCP loopback between processes this program forks.
//   peer_gloo_allreduce RANKS BYTES:REPEATS...

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "bench/measured_process.h"
#include "bench/timing.h"

namespace {

using Sum = std::function<void()>;
using Context = std::shared_ptr<gloo::Context>;

/// Gloo has two generations of algorithms side by side: functions with options, and classes.
Sum by_function(const Context& context, std::vector<float>& data,
                gloo::AllreduceOptions::Algorithm algorithm) {
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(algorithm);
  options->setOutput(data.data(), data.size());
  options->setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  return [options] { gloo::allreduce(*options); };
}

template <class Algorithm>
Sum by_class(const Context& context, std::vector<float>& data) {
  auto algorithm = std::make_shared<Algorithm>(context, std::vector<float*>{data.data()},
                                               static_cast<int>(data.size()));
  return [algorithm] { algorithm->run(); };
}

/// All ranks must take the same algorithm, so rank 0 decides after a short trial of each.
std::size_t fastest(const Context& context, const std::vector<Sum>& sums, std::size_t* decision) {
  constexpr int kTrials =
      5;  // Few, as some take a tenth of a second at sizes others do in no time.
  std::vector<double> seconds;
  for (const auto& sum : sums) seconds.push_back(cohort::bench::seconds_per_call(kTrials, sum));
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
  if (context->rank == 0) {
    const auto best = std::min_element(seconds.begin(), seconds.end());
    *decision = static_cast<std::size_t>(best - seconds.begin());
  }
  gloo::barrier(barrier);
  return *decision;
}

/// Checks the sum of each algorithm, then times the fastest.
double time_sum(const Context& context, const cohort::bench::TimingPlan& plan,
                std::size_t* decision) {
  std::vector<float> data(plan.count);
  const std::vector<Sum> sums = {
      by_function(context, data, gloo::AllreduceOptions::Algorithm::RING),
      by_function(context, data, gloo::AllreduceOptions::Algorithm::BCUBE),
      by_class<gloo::AllreduceRingChunked<float>>(context, data),
      by_class<gloo::AllreduceHalvingDoubling<float>>(context, data),
  };
  for (const auto& sum : sums) {
    std::fill(data.begin(), data.end(), cohort::bench::contribution_of(context->rank));
    sum();
    cohort::bench::check_sum(data, context->size);
  }
  std::fill(data.begin(), data.end(), 0.0f);  // Sums in place would otherwise grow without end.
  return cohort::bench::seconds_per_call(plan.repeats, sums[fastest(context, sums, decision)]);
}

/// What the ranks share beside Gloo.
struct Shared {
  std::size_t decision = 0;
  std::atomic<int> done = 0;
};

void run_rank(int rank, int world, const std::vector<cohort::bench::TimingPlan>& plans,
              const std::string& folder, Shared* shared) {
  cohort::bench::die_with_parent();
  cohort::bench::pin_to_core_of(rank);
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, world);
  context->connectFullMesh(store, device);

  std::vector<double> seconds;
  for (const auto& plan : plans) seconds.push_back(time_sum(context, plan, &shared->decision));
  if (rank == 0) cohort::bench::print_sums(plans, seconds);
  // Who ends first would make Gloo throw in the others.
  shared->done.fetch_add(1);
  while (shared->done.load() < world) sched_yield();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int world = std::atoi(argv[1]);
  const auto plans = cohort::bench::parse_plans({argv + 2, argv + argc});
  std::string folder = std::filesystem::temp_directory_path() / "cohort-gloo-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int rank = 0; rank < world; ++rank) {
    if (fork() != 0) continue;
    run_rank(rank, world, plans, folder, shared);
    _exit(0);
  }
  bool good = true;
  for (int rank = 0; rank < world; ++rank) {
    int status = 0;
    wait(&status);
    good = good && status == 0;
  }
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}
