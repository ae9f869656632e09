#include "train/run/compute_threads.h"

#include <algorithm>
#include <cstdlib>

#include "kernel/fast_settings.h"
#include "meet/process_settings.h"
#include "model/make_model.h"
#include "os/this_process.h"

namespace cohort::training {
namespace {

/// Networks of one hidden layer on two cores of a machine with other work: how many times as fast
/// two threads are as one, by multiplications forward, in the best of five runs and in the median.
/// 1.6 million: 1.0 and 0.8; 6.5: 1.0 and 0.7; 26: 1.35 and 1.3; 51: 1.5 and 1.0; 102: 1.6 and 1.1.
constexpr double kLeastWorkOfThread = 5e6;

}  // namespace

void forbid_compute_threads() {
  meet::compute_with(1);
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

void set_compute_threads(const ClusterOptions& cluster, const os::LocalPlace& place,
                         std::optional<double> part_work, bool bind) {
  const int threads = threads_of_worker(
      cluster,
      {.cores = os::usable_cores(), .local_workers = place.local_workers, .part_work = part_work});
  if (bind && cluster.pin) os::bind_to_share(place);
  meet::compute_with(threads);
}

}  // namespace cohort::training
