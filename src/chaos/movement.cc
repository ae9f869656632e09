#include "chaos/movement.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/fail.h"
#include "base/files.h"
#include "chaos/watch/disturbed_run.h"
#include "checkpoint/safetensors.h"

namespace cohort::chaos {
namespace {

constexpr int kFeatures = 255;
constexpr int kSamples = 48;
constexpr double kRate = 0.1;
// All steps together leave 1/e of the weights.
constexpr double kDecay = 1 / (kRate * MovementJob::kSteps);
constexpr double kFactor = 1 - kRate * kDecay;

/// Samples whose features and target are all 0.
std::string zeros_csv() {
  std::string line;
  for (int i = 0; i <= kFeatures; ++i) line += i == 0 ? "0" : ",0";
  std::string all;
  for (int i = 0; i < kSamples; ++i) all += line + "\n";
  return all;
}

std::string movement_toml(const std::filesystem::path& data_file, const ClusterSize& size) {
  return fmt::format(R"([job]
name = "movement"
seed = 3
[model]
layers = [ {{type="linear", out=1}} ]
[data]
kind = "csv"
path = "{}"
header = false
task = "values"
[train]
steps = {}
batch = 8
loss = "mean-squared-error"
validate = "never"
optimizer = {{ kind = "sgd", lr = {}, weight_decay = {} }}
[cluster]
workers = {}
)",
                     data_file.string(), MovementJob::kSteps, kRate, kDecay, size.workers);
}

/// Of its only layer, whose bias is left out: that one has a gradient and learns.
std::vector<float> weights_of(const std::filesystem::path& model) {
  const checkpoint::SafetensorsFile file = checkpoint::read_safetensors(model);
  for (const checkpoint::StoredTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with("weight")) continue;
    const auto values = file.floats(tensor.name);
    return {values.begin(), values.end()};
  }
  fail(ErrorCode::corrupt, "{} has no weights", model.string());
}

}  // namespace

// Training without gradients: all samples are 0, so the only thing that moves a weight is its
// decay, by the same factor with every step. How many steps a model has moved by can then be read
// from two files of weights, to a fraction of a step, whatever the strategy did with them in
// between.
double steps_between(const std::vector<float>& before, const std::vector<float>& after,
                     double factor) {
  if (before.size() != after.size()) {
    fail(ErrorCode::invalid, "{} weights have become {}", before.size(), after.size());
  }
  // The multiple of `before` that is nearest to `after`, by least squares: product / square.
  const double product = std::inner_product(before.begin(), before.end(), after.begin(), 0.0);
  const double square = std::inner_product(before.begin(), before.end(), before.begin(), 0.0);
  return std::log(product / square) / std::log(factor);
}

MovementJob::MovementJob(const ChaosOptions& options) : options_(options) {
  const auto folder = std::filesystem::absolute(options.folder);
  write_file_atomically(folder / "movement.csv", zeros_csv());
  options_.job_file = (folder / "movement.toml").string();
  write_file_atomically(options_.job_file, movement_toml(folder / "movement.csv", options.size));
  options_.overrides = options.cluster_settings;
  for (const std::string& setting : options.overrides) {
    const bool is_of_cluster =
        setting.starts_with("cluster.") && !setting.starts_with("cluster.servers");
    if (is_of_cluster) options_.overrides.push_back(setting);
  }
}

const std::vector<float>& MovementJob::first_weights() {
  if (first_weights_) return *first_weights_;
  const auto run_dir = options_.folder / "movement-first-step";
  const TestedStrategy alone{.name = "alone",
                             .settings = {"strategy.kind=allreduce", "cluster.servers=0"}};
  auto words = train_words(options_, alone, run_dir, {});
  words.insert(words.end(), {"--set", "train.steps=1"});
  DisturbedRun run(words, run_dir, options_.hang_seconds);
  while (!run.over()) run.pump();
  if (!run.ended_well()) {
    fail(ErrorCode::invalid, "the job that shows movement does not train; see {}.log",
         run_dir.string());
  }
  first_weights_ = weights_of(run_dir / "model.safetensors");
  return *first_weights_;
}

double MovementJob::steps_moved(const std::filesystem::path& model) {
  return 1 + steps_between(first_weights(), weights_of(model), kFactor);
}

}  // namespace cohort::chaos
