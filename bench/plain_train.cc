// One process that trains by a plain LibTorch loop with torch::optim.
//   plain_train NETWORK SKIPPED_STEPS STEPS

#include <cstdlib>

#include "training_loop.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  torch::set_num_threads(1);
  torch::manual_seed(1);
  auto task = peer::make_task(argv[1]);
  peer::print(
      peer::train(task, {std::atoi(argv[2]), std::atoi(argv[3])}, [](const torch::nn::Module&) {}));
}
