// The same plain LibTorch loop in several processes, which sum one flat gradient by MPI_Allreduce:
// the fastest data parallelism a user can write by hand on one machine.
//   mpirun -n RANKS mpi_train NETWORK SKIPPED_STEPS STEPS

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "training_loop.h"

namespace {

/// Replaces the gradients of a network by their mean over all ranks: they are copied into one flat
/// array, since one large sum is faster than one for every tensor, summed in place, and copied
/// back.
class GradientMean {
 public:
  explicit GradientMean(int world) : world_(world) {}

  void operator()(const torch::nn::Module& net) {
    const auto parameters = net.parameters();
    std::size_t count = 0;
    for (const auto& p : parameters) count += static_cast<std::size_t>(p.numel());
    flat_.resize(count);
    float* at = flat_.data();
    for (const auto& p : parameters) {
      std::memcpy(at, p.grad().data_ptr<float>(), p.grad().nbytes());
      at += p.numel();
    }
    MPI_Allreduce(MPI_IN_PLACE, flat_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    at = flat_.data();
    const float share = 1.0f / static_cast<float>(world_);
    for (const auto& p : parameters) {
      float* gradient = p.grad().data_ptr<float>();
      for (std::int64_t i = 0; i < p.numel(); ++i) gradient[i] = at[i] * share;
      at += p.numel();
    }
  }

 private:
  int world_;
  std::vector<float> flat_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  cohort::bench::die_with_parent();
  MPI_Init(nullptr, nullptr);
  int rank = 0, world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  cohort::bench::pin_to_core_of(rank);
  torch::set_num_threads(1);
  torch::manual_seed(1);  // The same start in every process.

  auto task = peer::make_task(argv[1]);
  const auto own = peer::train(task, {std::atoi(argv[2]), std::atoi(argv[3])}, GradientMean(world));
  peer::Figures all;
  MPI_Reduce(&own.samples_per_second, &all.samples_per_second, 1, MPI_DOUBLE, MPI_SUM, 0,
             MPI_COMM_WORLD);
  MPI_Reduce(&own.first_step_at, &all.first_step_at, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&own.peak_rss_bytes, &all.peak_rss_bytes, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) peer::print(all);
  MPI_Finalize();
}
