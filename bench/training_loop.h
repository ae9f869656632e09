#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "bench/measured_process.h"
#include "networks.h"

/// The training loop a user of LibTorch writes by hand, and what it measures of itself: SGD with
/// momentum over consecutive slices of data that lies in memory. What `cohort bench worker
/// training` prints has the same fields.

namespace peer {

/// What one process measured; print() makes the line of JSON of it.
struct Figures {
  double samples_per_second = 0;  ///< Of this process, the first `skipped` steps left out.
  double first_step_at = 0;       ///< On the clock of cohort::bench::seconds_now().
  double peak_rss_bytes = 0;
};

/// `skipped` steps that are not timed, then `steps` that are.
struct LoopLength {
  int skipped = 0;
  int steps = 0;
};

/// `exchange(net)` runs between backward pass and update: where workers agree on a gradient.
template <class Exchange>
Figures train(Task& task, LoopLength length, Exchange&& exchange) {
  torch::optim::SGD optimizer(task.net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const std::int64_t batches = task.input.size(0) / task.batch;
  Figures figures;
  double started = 0;
  for (int step = 0; step < length.skipped + length.steps; ++step) {
    if (step == length.skipped) started = cohort::bench::seconds_now();
    const std::int64_t from = (step % batches) * task.batch;
    optimizer.zero_grad();
    const auto output = task.net->forward(task.input.narrow(0, from, task.batch));
    const auto target = task.target.narrow(0, from, task.batch).flatten();
    torch::nn::functional::cross_entropy(output.flatten(0, -2), target).backward();
    exchange(*task.net);
    optimizer.step();
    if (step == 0) figures.first_step_at = cohort::bench::seconds_now();
  }
  const double seconds = cohort::bench::seconds_now() - started;
  figures.samples_per_second = static_cast<double>(length.steps * task.batch) / seconds;
  figures.peak_rss_bytes = static_cast<double>(cohort::bench::peak_rss_bytes());
  return figures;
}

inline void print(const Figures& figures) {
  std::printf("{\"samples_per_second\": %.6g, \"first_step_at\": %.6f, \"peak_rss_bytes\": %.0f}\n",
              figures.samples_per_second, figures.first_step_at, figures.peak_rss_bytes);
  std::fflush(stdout);
}

}  // namespace peer
