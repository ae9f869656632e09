// The plain loop of training_loop.h as ranks of one group, as a user of Cohort writes it.
//   cohort run -n RANKS loop_train NETWORK SKIPPED_STEPS STEPS

#include <cohort/data_parallel.h>

#include <cstdlib>

#include "training_loop.h"

namespace {

double over_ranks(const cohort::Group& group, double value, cohort::Reduce how) {
  torch::Tensor all = torch::tensor({value}, torch::kFloat64);
  group.all_reduce(all, how);
  return all.item<double>();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const cohort::Group group = cohort::join();
  torch::manual_seed(1);

  auto task = peer::make_task(argv[1]);
  cohort::DataParallel parallel(group, *task.net);
  const auto own = peer::train(task, {std::atoi(argv[2]), std::atoi(argv[3])},
                               [&](const torch::nn::Module&) { parallel.wait(); });
  const peer::Figures all = {
      .samples_per_second = over_ranks(group, own.samples_per_second, cohort::Reduce::sum),
      .first_step_at = over_ranks(group, own.first_step_at, cohort::Reduce::max),
      .peak_rss_bytes = over_ranks(group, own.peak_rss_bytes, cohort::Reduce::max)};
  if (group.rank() == 0) peer::print(all);
}
