#include "train/run/compute_threads.h"

#include <dlfcn.h>
#include <malloc.h>
#include <torch/torch.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <mutex>

#include "kernel/fast_settings.h"
#include "model/make_model.h"
#include "os/cores.h"

namespace cohort::training {
namespace {

/// Networks of one hidden layer on two cores of a machine with other work: how many times as fast
/// two threads are as one, by multiplications forward, in the best of five runs and in the median.
/// 1.6 million: 1.0 and 0.8; 6.5: 1.0 and 0.7; 26: 1.35 and 1.3; 51: 1.5 and 1.0; 102: 1.6 and 1.1.
constexpr double kLeastWorkOfThread = 5e6;

// OpenBLAS does not follow OpenMP's or torch's setting. It is found by name because which BLAS is
// in use is the system's choice, not the build's.
void set_blas_threads(int threads) {
  using SetThreads = void (*)(int);
  if (auto* set = reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set(threads);
  }
}

}  // namespace

void forbid_compute_threads() {
  torch::set_num_threads(1);
  set_blas_threads(1);
}

std::optional<double> part_work(const Job& job, const tensor::DataSpec& spec) {
  const auto sample = model::multiply_adds(job.model, spec);
  if (!sample) return std::nullopt;
  const auto parts = static_cast<double>(job.cluster.workers * job.train.accumulate);
  return *sample * static_cast<double>(job.train.batch) / parts;
}

int threads_for(const ThreadChoice& choice) {
  const int share = std::max(1, choice.cores / choice.local_workers);
  if (!choice.part_work) return share;
  const double worth = std::max(1.0, *choice.part_work / kLeastWorkOfThread);
  return worth < share ? static_cast<int>(worth) : share;
}

int threads_of_worker(const ClusterOptions& cluster, const ThreadChoice& choice) {
  if (cluster.threads > 0) return static_cast<int>(cluster.threads);
  const auto chosen = kernel::chosen_threads([](const char* name) { return std::getenv(name); });
  return chosen ? *chosen : threads_for(choice);
}

void set_compute_threads(const ClusterOptions& cluster, const launch::LocalPlace& place,
                         std::optional<double> part_work, bool bind) {
  const auto cores = os::usable_core_numbers();
  const int threads = threads_of_worker(cluster, {.cores = static_cast<int>(cores.size()),
                                                  .local_workers = place.local_workers,
                                                  .part_work = part_work});
  if (bind && cluster.pin) {
    os::run_on_cores(os::share_of_cores(cores, place.local_rank, place.local_workers));
  }
  // LibTorch makes its thread pools anew in every process and counts threads per thread, neither of
  // which two threads may do at once. Asking for the number fixes it for the calling thread.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  torch::set_num_threads(threads);
  torch::get_num_threads();
  set_blas_threads(threads);
}

void keep_large_blocks() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  ::mallopt(M_TOP_PAD, 16 << 20);
  ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace cohort::training
