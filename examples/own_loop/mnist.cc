// Digits, as a beginner's LibTorch program tells them, by any number of ranks. What makes it one of several
// ranks is marked "Cohort"; all else it would have without.
//
//   cohort run -n 2 ./mnist digits.pt 1 data/mnist       # save where, epochs, folder of MNIST (else digits are drawn)
//
// Started again it goes on where it last saved: also with another number of ranks, and in the middle of
// an epoch. `cohort run --max-restarts 3` does so by itself.

#include <cohort/cohort.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

struct Net : torch::nn::Module {
  Net()
      : conv1(register_module("conv1", torch::nn::Conv2d(1, 10, 5))),
        conv2(register_module("conv2", torch::nn::Conv2d(10, 20, 5))),
        fc1(register_module("fc1", torch::nn::Linear(320, 50))),
        fc2(register_module("fc2", torch::nn::Linear(50, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2(x), 2));
    return torch::log_softmax(fc2(torch::relu(fc1(x.flatten(1)))), 1);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
};

struct Digits : torch::data::datasets::Dataset<Digits> {
  Digits(torch::Tensor its_images, torch::Tensor its_labels)
      : images(std::move(its_images)), labels(std::move(its_labels)) {}

  torch::data::Example<> get(std::size_t index) override {
    return {images[static_cast<std::int64_t>(index)], labels[static_cast<std::int64_t>(index)]};
  }
  torch::optional<std::size_t> size() const override { return images.size(0); }

  torch::Tensor images, labels;
};

/// Noise over one of ten patterns, for where there is no MNIST.
Digits draw_digits(std::int64_t count, std::uint64_t seed) {
  torch::manual_seed(1);
  const torch::Tensor patterns =
      torch::avg_pool2d(torch::rand({10, 1, 32, 32}), 5, 1).sub(0.5).mul(8);
  torch::manual_seed(seed);
  const torch::Tensor labels = torch::arange(count).remainder(10);
  return {patterns.index_select(0, labels) + 0.5 * torch::randn({count, 1, 28, 28}), labels};
}

Digits read_digits(const std::string& folder, bool for_training) {
  using torch::data::datasets::MNIST;
  if (folder.empty()) return draw_digits(for_training ? 1920 : 480, for_training ? 2 : 3);
  const MNIST all(folder, for_training ? MNIST::Mode::kTrain : MNIST::Mode::kTest);
  return {all.images(), all.targets()};
}

/// How far a training has come.
struct Place {
  std::int64_t epoch = 0;
  std::int64_t samples = 0;  ///< Of that epoch, by all ranks together.
};

void save(const std::string& file, Net& net, torch::optim::Optimizer& optimizer, Place place) {
  torch::serialize::OutputArchive all, of_net, of_optimizer;
  net.save(of_net);
  optimizer.save(of_optimizer);
  all.write("net", of_net);
  all.write("optimizer", of_optimizer);
  all.write("place", torch::tensor({place.epoch, place.samples}));
  all.save_to(file + ".part");
  std::filesystem::rename(file + ".part",
                          file);  // A rank that is killed here leaves the file before.
}

Place load(const std::string& file, Net& net, torch::optim::Optimizer& optimizer) {
  if (!std::filesystem::exists(file)) return {};
  torch::serialize::InputArchive all, of_net, of_optimizer;
  torch::Tensor place;
  all.load_from(file);
  all.read("net", of_net);
  all.read("optimizer", of_optimizer);
  all.read("place", place);
  net.load(of_net);
  optimizer.load(of_optimizer);
  return {place[0].item<std::int64_t>(), place[1].item<std::int64_t>()};
}

/// The share of the digits that is told right. Every rank looks at its part of them.
double accuracy(const cohort::Group& group, Net& net, const Digits& digits) {
  const torch::NoGradGuard no_grad;
  torch::Tensor right = torch::zeros({1}, torch::kInt64);
  const std::int64_t part = 1000;
  for (std::int64_t from = group.rank() * part; from < digits.images.size(0);
       from += group.world() * part) {
    const std::int64_t count = std::min(part, digits.images.size(0) - from);
    const torch::Tensor answers = net.forward(digits.images.narrow(0, from, count)).argmax(1);
    right += answers.eq(digits.labels.narrow(0, from, count)).sum();
  }
  group.all_reduce(right);
  return right.item<double>() / static_cast<double>(digits.images.size(0));
}

int main(int argc, char** argv) {
  cohort::use_fast_kernels();
  const cohort::Group group = cohort::join();  // Cohort
  const std::string file = argc > 1 ? argv[1] : "digits.pt";
  const std::int64_t epochs = argc > 2 ? std::atoi(argv[2]) : 1;
  const std::string folder = argc > 3 ? argv[3] : "";
  const std::int64_t batch = 96;  // Of all ranks together: 1, 2, 3, 4, 6 or 8 make the same steps.

  Digits train = read_digits(folder, true);
  const Digits test = read_digits(folder, false);
  const std::int64_t count = train.images.size(0);

  torch::manual_seed(7);
  Net net;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Place place =
      load(file, net, optimizer);  // All ranks read it: the optimizer is every rank's own.

  cohort::DataParallel parallel(group, net);                     // Cohort
  cohort::DistributedSampler sampler(group, count, /*seed=*/7);  // Cohort
  auto loader = torch::data::make_data_loader(train.map(torch::data::transforms::Stack<>()),
                                              sampler, batch / group.world());
  for (; place.epoch < epochs; place = {place.epoch + 1, 0}) {
    sampler.set_epoch(place.epoch, place.samples);  // Cohort
    for (auto& some : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nll_loss(net.forward(some.data), some.target);
      loss.backward();
      parallel.wait();  // Cohort
      optimizer.step();

      place.samples = sampler.samples_done();  // Cohort
      const std::int64_t step = place.samples / batch;
      if (step % 10 == 0 && group.rank() == 0) {
        save(file, net, optimizer, place);
        std::cout << "epoch " << place.epoch << " step " << step << " loss " << loss.item<double>()
                  << std::endl;
      }
    }
  }
  if (group.rank() == 0) save(file, net, optimizer, place);
  const double right = accuracy(group, net, test);
  if (group.rank() == 0) std::cout << "accuracy " << right << std::endl;
}
