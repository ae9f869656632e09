#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace cohort {

class Dataset;
class Model;

/// A job: what to train, on what, how. The fields are the keys of a job file, by the same names;
/// see docs/job.md. A program sets the `make` and `own` members instead of naming presets.

/// One layer of `[model] layers`. Which fields a type reads is in docs/job.md; zero or empty means
/// the type's default.
struct LayerOptions {
  std::string type = {};
  std::int64_t out = 0;                   ///< Features or channels of the output.
  std::int64_t kernel = 0;                ///< conv2d, maxpool, avgpool.
  std::int64_t stride = 0;                ///< Default: 1 for conv2d, the kernel for pools.
  std::int64_t padding = 0;               ///< conv2d, maxpool, avgpool.
  std::int64_t heads = 0;                 ///< transformer.
  std::int64_t vocabulary = 0;            ///< embedding; default: the dataset's.
  std::optional<double> p = {};           ///< dropout (default 0.5), transformer (default 0).
  bool bias = true;                       ///< linear, conv2d.
  bool causal = false;                    ///< transformer: a position sees only those before it.
  bool positions = false;                 ///< embedding: add a learned vector for each position.
  bool sparse = false;                    ///< embedding: servers send and get only touched rows.
  std::vector<LayerOptions> layers = {};  ///< residual: the branch that is added to its input.
};

struct ModelOptions {
  std::string preset = {};                ///< mlp, lenet, resnet8, gpt-mini.
  std::vector<std::int64_t> hidden = {};  ///< mlp: the widths between input and output.
  std::int64_t width = 0;  ///< gpt-mini, resnet8: the width; 0 means the preset's own.
  std::int64_t depth = 0;  ///< gpt-mini: the number of blocks.
  std::int64_t heads = 0;  ///< gpt-mini.
  std::vector<LayerOptions> layers = {};  ///< The network layer by layer, instead of a preset.
  std::string torchscript = {};           ///< A TorchScript file, instead of both.
  std::function<std::unique_ptr<Model>()> make =
      {};  ///< A program's own model, instead of all three.
};

struct DataOptions {
  std::string kind = "mnist";  ///< mnist, csv, libsvm, text, generated.
  std::string path = {};
  std::string validation_path = {};  ///< A second file; otherwise a part of the first is set aside.
  double validation_fraction = 0.1;  ///< That part, for kinds with no validation file.
  std::string target = {};           ///< csv: the column to predict; default: the last.
  bool header = true;                ///< csv: the first line names the columns.
  std::string task = "digits";    ///< generated: digits, blobs, regression. csv: classes, values.
  std::int64_t samples = 10000;   ///< generated.
  std::int64_t features = 0;      ///< generated, libsvm (0: the largest index seen).
  std::int64_t classes = 0;       ///< generated; 0: the task's own number.
  std::int64_t context = 128;     ///< text: characters the model sees.
  double noise = 0.1;             ///< generated.
  std::string unknown = "error";  ///< csv, libsvm, text: classes and characters never seen in
                                  ///< training: error, accept.
  std::shared_ptr<const Dataset> own_train = {};  ///< A program's own dataset, instead of a kind.
  std::shared_ptr<const Dataset> own_validation = {};
};

struct OptimizerOptions {
  std::string kind =
      "sgd";  ///< sgd, adam, adamw, adagrad. The numbers mean what torch::optim's do.
  double lr = 0.1;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 0;   ///< 0: torch's default of that optimizer.
  double lr_decay = 0;  ///< adagrad.
};

struct ScheduleOptions {
  std::string kind = "constant";  ///< constant, step, cosine.
  std::int64_t warmup_steps = 0;  ///< The rate grows linearly over these first steps.
  std::int64_t step_size = 0;     ///< step: steps between two cuts.
  double gamma = 0.1;             ///< step: what a cut multiplies by.
  double final_lr = 0;            ///< cosine: the rate at the last step.
  bool scale_by_workers = false;  ///< Multiply the rate by the number of workers.
};

struct TrainOptions {
  std::int64_t epochs = 0;  ///< Exactly one of epochs and steps.
  std::int64_t steps = 0;
  std::int64_t batch = 128;            ///< Samples of one step, all workers together.
  std::string loss = "cross-entropy";  ///< cross-entropy, mean-squared-error.
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  double clip_norm = 0;         ///< 0: no clipping. Otherwise the largest norm of all gradients.
  std::int64_t accumulate = 1;  ///< Micro-batches per step; a step's batch is cut into that many.
  std::string validate = "epoch";  ///< epoch (and at the end), end, never.

  /// A program's own loss: the mean over the samples of a batch.
  std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)> own_loss = {};
};

/// How what travels between workers is made smaller.
struct CompressionOptions {
  std::string kind = "none";        ///< none, fp16, bf16, int8, sign, topk, lowrank, auto.
  double ratio = 0.01;              ///< topk: the share of the values that travels.
  std::int64_t rank = 4;            ///< lowrank: columns of the two factors of a matrix.
  bool error_feedback = true;       ///< Add what was lost to the next message.
  bool momentum_correction = true;  ///< topk, sign: SGD's momentum comes before the codec.
};

/// averaging: what the centre makes of the averaged change of the parameters.
struct OuterOptions {
  std::string kind = "mean";  ///< mean, momentum, nesterov.
  double lr = 1;              ///< 1 with `mean` takes over the average as it is.
  double momentum = 0.9;
};

struct StrategyOptions {
  std::string kind = "allreduce";  ///< allreduce, parameter-server, averaging, gossip.

  std::string algorithm = "auto";       ///< allreduce: ring, direct, tree, auto.
  std::int64_t bucket_bytes = 4 << 20;  ///< allreduce: gradients travel in pieces of this size.
  /// allreduce: linear layers' factors travel where they are smaller. Without a value: where they are
  /// much smaller, of large layers.
  std::optional<bool> factors = {};

  std::string consistency = "sync";  ///< parameter-server: sync, async, bounded, k-of-n.
  std::int64_t staleness = 8;        ///< bounded: steps the fastest may be ahead of the slowest.
  std::int64_t quorum = 0;           ///< k-of-n, partial averaging: pushes that make an update.
  std::string late = "weight";       ///< k-of-n, partial: weight late pushes, or drop them.
  std::string push = "gradient";     ///< parameter-server: gradient, delta.
  std::int64_t local_steps = 1;      ///< parameter-server: own steps between two delta pushes.
  std::string weight = "none";       ///< Of stale pushes: none, 1/staleness, (1+staleness)^-a.
  double weight_power = 0.5;         ///< The a of (1+staleness)^-a.
  std::int64_t replicas = 1;         ///< 2: every server's shard has a copy on another server.

  std::string mode = "sync";  ///< averaging: sync, partial.
  std::int64_t every = 16;    ///< averaging: own steps between two averages; 0: once an epoch.
  OuterOptions outer;

  std::string send = "parameters";       ///< gossip: parameters, gradients.
  std::string topology = "exponential";  ///< gossip: all, ring, random, exponential.

  CompressionOptions compression;
};

struct ClusterOptions {
  std::int64_t workers = 1;
  std::int64_t servers = 0;
  std::string engine = "auto";                ///< auto, shm, gloo, shm+gloo, inproc.
  std::string replication = "between-graph";  ///< a process per worker; or in-graph: a thread each.
  double timeout_seconds = 60;  ///< The longest wait for a peer before it is declared lost.
  std::int64_t threads = 0;  ///< BLAS and OpenMP threads of a worker; 0: see docs/performance.md.
  bool pin = true;           ///< Bind every worker to its share of the cores.
  std::int64_t max_restarts = 3;     ///< Lost tasks that are replaced, within ten minutes.
  std::int64_t min_workers = 0;      ///< With so many the rest go on alone; 0: all are needed.
  double silence_warn_seconds = 5;   ///< Without a heartbeat: a warning.
  double silence_lost_seconds = 15;  ///< Without a heartbeat: the task is declared lost.
};

struct LogOptions {
  std::int64_t every_steps = 10;  ///< Steps between two lines of metrics.jsonl and the event file.
  bool tensorboard = true;
  bool histograms = false;  ///< Parameter histograms in the event file, once an epoch.
  bool trace = false;       ///< Write trace.json.
};

struct CheckpointOptions {
  std::int64_t every_steps = 0;  ///< Steps between two checkpoints; 0: not by steps.
  double every_seconds = 0;      ///< Seconds between two; 0: not by time.
  std::int64_t keep = 2;         ///< How many of the last stay; at least 2.
};

struct Job {
  std::string name = "job";
  std::uint64_t seed = 1;
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  StrategyOptions strategy;
  ClusterOptions cluster;
  LogOptions log;
  CheckpointOptions checkpoint;
};

}  // namespace cohort
