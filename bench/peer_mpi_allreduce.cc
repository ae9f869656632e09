// Open MPI's sum of float32 arrays between the processes of one machine.
//   mpirun -n RANKS peer_mpi_allreduce BYTES:REPEATS...

#include <mpi.h>

#include <algorithm>
#include <vector>

#include "bench/measured_process.h"
#include "bench/timing.h"

namespace {

/// Seconds of a sum of one size, after both ways to call it have been checked.
double time_sum(const cohort::bench::TimingPlan& plan, int rank, int world) {
  std::vector<float> in(plan.count, cohort::bench::contribution_of(rank));
  std::vector<float> out(plan.count);
  const int count = static_cast<int>(plan.count);
  const auto between = [&] {
    MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  const auto in_place = [&] {
    MPI_Allreduce(MPI_IN_PLACE, in.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  between();
  cohort::bench::check_sum(out, world);
  in_place();
  cohort::bench::check_sum(in, world);
  std::fill(in.begin(), in.end(), 0.0f);  // Sums in place would otherwise grow without end.

  // A user can call it either way; the faster one counts.
  return std::min(cohort::bench::seconds_per_call(plan.repeats, between),
                  cohort::bench::seconds_per_call(plan.repeats, in_place));
}

}  // namespace

int main(int argc, char** argv) {
  cohort::bench::die_with_parent();
  MPI_Init(&argc, &argv);
  int rank = 0, world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  cohort::bench::pin_to_core_of(rank);

  const auto plans = cohort::bench::parse_plans({argv + 1, argv + argc});
  std::vector<double> seconds;
  for (const auto& plan : plans) seconds.push_back(time_sum(plan, rank, world));
  if (rank == 0) cohort::bench::print_sums(plans, seconds);
  MPI_Finalize();
}
