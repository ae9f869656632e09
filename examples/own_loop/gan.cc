// A generator learns to draw points on a ring, against a discriminator that learns to tell them from real
// ones: two networks with an optimizer each, three backward passes a step, by any number of ranks.
//
//   cohort run -n 2 ./gan ring.pt 1000                   # save where, steps
//
// Every rank takes its rows of the batch, and the batch depends on nothing but the step: so any number of
// ranks learns the same, and a run that is started again goes on where it last saved.

#include <cohort/cohort.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace nn = torch::nn;
using torch::Tensor;

constexpr std::int64_t kBatch = 96;  // Of all ranks together.
constexpr std::int64_t kNoise = 8;

/// Batch norm would see the rows of its rank alone, so that other numbers of ranks would learn otherwise.
nn::Sequential make_generator() {
  return nn::Sequential(nn::Linear(kNoise, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(),
                        nn::Linear(32, 2));
}

nn::Sequential make_discriminator() {
  return nn::Sequential(nn::Linear(2, 32), nn::LeakyReLU(), nn::Linear(32, 32), nn::LeakyReLU(),
                        nn::Linear(32, 1));
}

/// Eight spots on a circle.
Tensor draw_real(std::int64_t rows) {
  const Tensor angle = torch::randint(8, {rows}).mul(2 * M_PI / 8);
  return torch::stack({angle.cos(), angle.sin()}, 1) + 0.02 * torch::randn({rows, 2});
}

Tensor says(const Tensor& score, double is_real) {
  return torch::binary_cross_entropy_with_logits(score, torch::full_like(score, is_real));
}

/// A network and what trains it.
struct Player {
  Player(nn::Sequential its_net, double rate)
      : net(std::move(its_net)),
        optimizer(net->parameters(), torch::optim::AdamOptions(rate).betas({0.5, 0.9})) {}

  void save(torch::serialize::OutputArchive& all, const std::string& name) {
    torch::serialize::OutputArchive of_net, of_optimizer;
    net->save(of_net);
    optimizer.save(of_optimizer);
    all.write(name, of_net);
    all.write(name + "_optimizer", of_optimizer);
  }

  void load(torch::serialize::InputArchive& all, const std::string& name) {
    torch::serialize::InputArchive of_net, of_optimizer;
    all.read(name, of_net);
    all.read(name + "_optimizer", of_optimizer);
    net->load(of_net);
    optimizer.load(of_optimizer);
  }

  nn::Sequential net;
  torch::optim::Adam optimizer;
};

void save(const std::string& file, Player& generator, Player& discriminator, std::int64_t steps) {
  torch::serialize::OutputArchive all;
  generator.save(all, "generator");
  discriminator.save(all, "discriminator");
  all.write("steps", torch::tensor(steps));
  all.save_to(file + ".part");
  std::filesystem::rename(file + ".part", file);
}

/// How many steps were made.
std::int64_t load(const std::string& file, Player& generator, Player& discriminator) {
  if (!std::filesystem::exists(file)) return 0;
  torch::serialize::InputArchive all;
  all.load_from(file);
  generator.load(all, "generator");
  discriminator.load(all, "discriminator");
  Tensor steps;
  all.read("steps", steps);
  return steps.item<std::int64_t>();
}

int main(int argc, char** argv) {
  cohort::use_fast_kernels();
  const cohort::Group group = cohort::join();
  const std::string file = argc > 1 ? argv[1] : "ring.pt";
  const std::int64_t steps = argc > 2 ? std::atoi(argv[2]) : 1000;
  const std::int64_t from = group.rank() * kBatch / group.world();
  const std::int64_t rows =
      (group.rank() + 1) * kBatch / group.world() - from;  // With five ranks 19 or 20.

  torch::manual_seed(7);
  Player generator(make_generator(), 1e-3), discriminator(make_discriminator(), 2e-3);
  std::int64_t step = load(file, generator, discriminator);
  cohort::DataParallel for_generator(group, *generator.net),
      for_discriminator(group, *discriminator.net);

  for (; step < steps; ++step) {
    torch::manual_seed(1000 + step);
    const Tensor real = draw_real(kBatch).narrow(0, from, rows);
    const Tensor noise = torch::randn({kBatch, kNoise}).narrow(0, from, rows);
    const Tensor drawn = generator.net->forward(noise);

    // Two losses, two backward passes, and one wait() for the sum of their gradients.
    discriminator.optimizer.zero_grad();
    says(discriminator.net->forward(real), 0.9).backward();
    const Tensor fooled = says(discriminator.net->forward(drawn.detach()), 0.0);
    fooled.backward();
    for_discriminator.wait(rows);
    discriminator.optimizer.step();

    // This one goes through the discriminator too, and leaves gradients there that nobody wants: the next
    // zero_grad() drops them, and they were never sent.
    generator.optimizer.zero_grad();
    const Tensor loss = says(discriminator.net->forward(drawn), 1.0);
    loss.backward();
    for_generator.wait(rows);
    generator.optimizer.step();

    if ((step + 1) % 20 == 0 && group.rank() == 0) {
      save(file, generator, discriminator, step + 1);
      std::cout << "step " << step + 1 << " generator " << loss.item<double>() << " discriminator "
                << fooled.item<double>() << std::endl;
    }
  }
  if (group.rank() != 0) return 0;
  save(file, generator, discriminator, step);
  torch::manual_seed(1);
  const Tensor radius = generator.net->forward(torch::randn({1000, kNoise})).norm(2, 1);
  std::cout << "points lie " << (radius - 1).abs().mean().item<double>() << " from the ring"
            << std::endl;
}
