// Group::all_reduce of float32 tensors between the ranks of one machine.
//   cohort run -n RANKS loop_allreduce any|shared BYTES:REPEATS...
// "any" are tensors of LibTorch, as a program has them; "shared" are those of Group::empty().

#include <cohort/group.h>

#include <span>
#include <string>

#include "bench/timing.h"

namespace {

torch::Tensor make_tensor(const cohort::Group& group, bool shared, std::size_t count) {
  const auto size = static_cast<std::int64_t>(count);
  return shared ? group.empty({size}) : torch::empty({size});
}

/// Seconds of a sum of one size, after one has been checked.
double time_sum(const cohort::Group& group, bool shared, const cohort::bench::TimingPlan& plan) {
  torch::Tensor tensor = make_tensor(group, shared, plan.count);
  tensor.fill_(cohort::bench::contribution_of(group.rank()));
  group.all_reduce(tensor);
  cohort::bench::check_sum(std::span(tensor.data_ptr<float>(), plan.count), group.world());
  group.barrier();
  tensor.zero_();  // The sum would otherwise grow without end.
  return cohort::bench::seconds_per_call(plan.repeats, [&] { group.all_reduce(tensor); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const cohort::Group group = cohort::join();
  const auto plans = cohort::bench::parse_plans({argv + 2, argv + argc});
  std::vector<double> seconds;
  for (const auto& plan : plans) {
    seconds.push_back(time_sum(group, std::string(argv[1]) == "shared", plan));
  }
  if (group.rank() == 0) cohort::bench::print_sums(plans, seconds);
}
