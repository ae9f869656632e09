#include <cohort/cohort.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/fail.h"
#include "base/files.h"
#include "base/names.h"
#include "bench/bench_worker.h"
#include "bench/measured_process.h"
#include "bench/timing.h"
#include "os/memory.h"

namespace cohort::bench {
namespace {

// `cohort bench worker training`: one training by the public door of the library, cohort::train(),
// timed from outside by when each worker computes its loss. The line that is printed:
//
//   samples_per_second        of all workers, after the steps that are skipped
//   first_step_at             seconds_now() when the last worker was in its second step
//   peak_rss_bytes            of the largest worker
//   with checkpoints also
//   rate_with_checkpoint      samples per second in stretches with a checkpoint,
//   rate_without_checkpoint   and in those without
//   checkpoint_seconds        from the beginning of one in the background until it was saved
//   checkpoint_stall          how long the chief stands still for one

constexpr int kMostWorkers = 64;

/// When each worker computed which loss: one moment of every step, seen from outside of what is
/// measured, and written by the workers for the process that started them. Lives in memory that is
/// shared by fork: a table of a row per worker, of a double per step. A worker takes the next free
/// row when it stamps for the first time, and nobody else writes to it.
class StepStamps {
 public:
  explicit StepStamps(int steps)
      : steps_(steps), memory_(os::SharedMemory::create(sizeof(Table) + bytes_of(kMostWorkers))) {}

  /// The loss of a worker's next step is being computed, in the worker's process.
  void stamp() {
    if (owner_ != getpid()) {
      owner_ = getpid();
      worker_ = table().workers.fetch_add(1);
      step_ = 0;
    }
    if (worker_ < kMostWorkers && step_ < steps_) row(worker_)[step_++] = seconds_now();
  }

  int workers() const { return std::min(table().workers.load(), kMostWorkers); }

  /// When the last worker was in `step`, counted from 0. Read once the workers have ended.
  double last(int step) const {
    double at = 0;
    for (int worker = 0; worker < workers(); ++worker) at = std::max(at, row(worker)[step]);
    return at;
  }

 private:
  struct alignas(64) Table {
    std::atomic<int> workers;
  };

  std::size_t bytes_of(int workers) const {
    return static_cast<std::size_t>(workers) * static_cast<std::size_t>(steps_) * sizeof(double);
  }
  Table& table() const { return *reinterpret_cast<Table*>(memory_.data()); }
  double* row(int worker) const {
    return reinterpret_cast<double*>(memory_.data() + sizeof(Table) + bytes_of(worker));
  }

  int steps_;
  os::SharedMemory memory_;
  // Of this process: who it is (another process's copy of this object has another), its row and the
  // next step in it.
  pid_t owner_ = 0;
  int worker_ = 0;
  int step_ = 0;
};

/// What is trained.
struct Network {
  ModelOptions model;
  std::shared_ptr<const Dataset> data;
  std::int64_t batch = 64;  ///< Of one worker.
};

/// The networks of bench/networks.h, by Cohort's presets, on random data.
Network make_network(const std::string& name) {
  check_known("network", name, {"mlp", "wide-mlp", "conv", "transformer"});
  constexpr int kSamples = 2048;
  torch::manual_seed(1);
  Network network;
  if (name == "transformer") {
    network.model.preset = "gpt-mini";
    network.model.width = 256;
    network.model.depth = 4;
    network.model.heads = 4;
    network.batch = 8;
    auto ids = torch::randint(1000, {256, 129}, torch::kLong);
    ids[0][0] = ids[0][1] = 999;  // The vocabulary is known by its largest id.
    network.data = std::make_shared<TensorDataset>(ids.slice(1, 0, 128).contiguous(),
                                                   ids.slice(1, 1, 129).contiguous());
    return network;
  }
  const bool images = name == "conv";
  network.model.preset = images ? "lenet" : "mlp";
  if (name == "mlp") network.model.hidden = {512, 256};
  if (name == "wide-mlp") network.model.hidden = {4096, 2048};
  network.data = std::make_shared<TensorDataset>(
      images ? torch::randn({kSamples, 1, 28, 28}) : torch::randn({kSamples, 784}),
      torch::randint(10, {kSamples}, torch::kLong));
  return network;
}

/// A job whose loss stamps every step. It logs as little as a job can: its peers log nothing.
Job make_job(const Network& network, int workers, StepStamps& stamps) {
  Job job;
  job.name = "bench";
  job.model = network.model;
  job.data.own_train = network.data;
  job.train.batch = network.batch * workers;
  job.train.optimizer = {.kind = "sgd", .lr = 0.01, .momentum = 0.9};
  job.train.validate = "never";
  job.train.own_loss = [&stamps](const at::Tensor& output, const at::Tensor& target) {
    stamps.stamp();
    return torch::nn::functional::cross_entropy(output.flatten(0, -2), target.flatten());
  };
  job.cluster.workers = workers;
  job.cluster.threads = 1;
  job.log.every_steps = 1'000'000;
  job.log.tensorboard = false;
  return job;
}

/// The most memory of the largest worker; servers and the launcher are left out.
std::int64_t largest_rss(const Summary& summary) {
  std::int64_t largest = 0;
  for (const auto& task : summary.tasks) {
    if (task.role == "worker" || task.role == "chief") {
      largest = std::max(largest, task.peak_rss_bytes);
    }
  }
  return largest;
}

/// Training alternates between stretches with one checkpoint, which begin a little before it, and
/// as long ones without any: the rate in both, the median stretch of each.
///
///   steps    195        200                  295                 395        400
///            | with     C                    | without           | with     C
///
/// So what is compared is seconds apart, whatever the machine does in the long run.
nlohmann::json cost_of_checkpoints(const StepStamps& stamps, const Job& job, double step_samples) {
  const auto every = static_cast<int>(job.checkpoint.every_steps);
  const int stretch = every / 2;
  const int before = every / 40;
  std::vector<double> with, without;
  for (int begin = every - before; begin + every < job.train.steps; begin += every) {
    const int middle = begin + stretch;
    with.push_back(stamps.last(middle) - stamps.last(begin));
    without.push_back(stamps.last(middle + stretch) - stamps.last(middle));
  }
  if (with.empty()) fail(ErrorCode::invalid, "{} steps are too few", job.train.steps);
  return {{"rate_with_checkpoint", stretch * step_samples / median(with)},
          {"rate_without_checkpoint", stretch * step_samples / median(without)}};
}

/// The seconds each checkpoint of a run took from its beginning in the background until it was
/// saved, as the chief's log says.
std::vector<double> saved_checkpoints(const std::filesystem::path& run_dir) {
  static const std::regex kSaved("checkpoint of step [0-9]+ saved in ([0-9.]+) s");
  std::ifstream lines(run_dir / "logs" / "worker-0.log");
  std::vector<double> seconds;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, kSaved)) seconds.push_back(std::stod(found[1]));
  }
  return seconds;
}

/// How long a checkpoint is written in the background, and how long the chief stands still for one.
nlohmann::json time_of_checkpoints(const std::filesystem::path& run_dir, const Summary& summary) {
  const std::vector<double> saved = saved_checkpoints(run_dir);
  if (saved.empty()) fail(ErrorCode::io, "the measured run has saved no checkpoint");
  // The mean over the workers, of which only the chief has any.
  const double stall =
      summary.phase_seconds.at("checkpoint") * static_cast<double>(summary.workers);
  return {{"checkpoint_seconds", median(saved)},
          {"checkpoint_stall", stall / static_cast<double>(saved.size())}};
}

}  // namespace

void run_train_worker(const std::vector<std::string>& words) {
  if (words.size() != 4 && words.size() != 5) {
    fail(ErrorCode::invalid, "usage: training NETWORK WORKERS SKIPPED STEPS [CHECKPOINT_EVERY]");
  }
  const int workers = std::stoi(words[1]);
  const int skipped = std::stoi(words[2]);
  const int steps = std::stoi(words[3]);
  const Network network = make_network(words[0]);

  // A stamp is in the middle of its step, so one step more has to begin than is timed.
  StepStamps stamps(skipped + steps + 1);
  Job job = make_job(network, workers, stamps);
  job.train.steps = skipped + steps + 1;
  if (words.size() == 5) job.checkpoint.every_steps = std::stoi(words[4]);
  const TemporaryFolder folder;
  const Summary summary =
      train(job, {.run_dir = (folder.path() / "run").string(), .quiet = true, .json_log = false});
  if (summary.exit_code != 0 || stamps.workers() != workers) {
    fail(ErrorCode::io, "the measured run {}: {}", summary.status,
         summary.failures.empty() ? "no worker computed a loss" : summary.failures.front());
  }
  const double seconds = stamps.last(skipped + steps) - stamps.last(skipped);
  const double samples = static_cast<double>(steps * workers * network.batch);
  nlohmann::json line = {{"samples_per_second", samples / seconds},
                         {"first_step_at", stamps.last(1)},
                         {"peak_rss_bytes", largest_rss(summary)}};
  if (job.checkpoint.every_steps > 0) {
    const double step_samples = static_cast<double>(workers * network.batch);
    line.update(cost_of_checkpoints(stamps, job, step_samples));
    line.update(time_of_checkpoints(folder.path() / "run", summary));
  }
  fmt::print("{}\n", line.dump());
}

}  // namespace cohort::bench
