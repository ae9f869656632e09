// A program with a LibTorch module, a dataset and a loss of its own, trained by two processes.
//
// Two interleaved spirals; the network has to tell which one a point is on.

#include <cohort/cohort.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

struct Net : torch::nn::Module {
  Net()
      : hidden(register_module("hidden", torch::nn::Linear(2, 64))),
        deeper(register_module("deeper", torch::nn::Linear(64, 64))),
        output(register_module("output", torch::nn::Linear(64, 2))) {}

  torch::Tensor forward(const torch::Tensor& point) {
    return output(torch::tanh(deeper(torch::tanh(hidden(point)))));
  }

  torch::nn::Linear hidden, deeper, output;
};

class Spirals : public cohort::Dataset {
 public:
  Spirals(std::int64_t points, double phase) : points_(points), phase_(phase) {}

  std::int64_t size() const override { return points_; }

  cohort::Batch gather(std::span<const std::int64_t> indices) const override {
    const auto rows = static_cast<std::int64_t>(indices.size());
    cohort::Batch batch{torch::empty({rows, 2}), torch::empty({rows}, torch::kInt64)};
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t spiral = indices[row] % 2;
      const double turn = 0.5 + 6.0 * (indices[row] + phase_) / points_;
      const double angle = turn + M_PI * spiral;
      batch.input[row][0] = turn * std::cos(angle) / 6;
      batch.input[row][1] = turn * std::sin(angle) / 6;
      batch.target[row] = spiral;
    }
    return batch;
  }

 private:
  std::int64_t points_;
  double phase_;
};

torch::Tensor smoothed_loss(const torch::Tensor& output, const torch::Tensor& spiral) {
  return torch::nn::functional::cross_entropy(
      output, spiral, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.05));
}

int main(int argc, char** argv) {
  cohort::use_fast_kernels();  // First of all: it may start the program anew, once.

  cohort::Job job;
  job.name = "spirals";
  job.seed = 7;
  const auto make = [] { return cohort::wrap(std::make_shared<Net>()); };
  job.model.make = make;
  job.data.own_train = std::make_shared<Spirals>(2000, 0.0);
  job.data.own_validation = std::make_shared<Spirals>(500, 0.5);
  job.train.own_loss = smoothed_loss;
  job.train.epochs = 60;
  job.train.batch = 100;
  job.train.optimizer = {.kind = "adam", .lr = 0.01};
  job.cluster.workers = argc > 1 ? std::atoi(argv[1]) : 2;

  try {
    const cohort::Summary summary = cohort::train(job);
    if (summary.exit_code != 0) return summary.exit_code;

    // The module is this program's own, so it gives one, and the run's folder the trained weights.
    cohort::LoadedModel model = cohort::load_model(summary.run_dir, make);
    const cohort::Prediction point = model.predict(cohort::NumberRow{0.3, 0.2});
    std::printf("the point (0.3, 0.2) is on spiral %s\n", point.class_name.c_str());
    std::printf("accuracy %.3f after %ld steps\n", summary.accuracy.value_or(0), summary.steps);
    return 0;
  } catch (const cohort::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
