#include <utility>

#include "base/names.h"
#include "collective/algorithms.h"
#include "compression/codec.h"
#include "data/load_data.h"
#include "data/sampler.h"
#include "gossip/topology.h"
#include "job/key_table.h"
#include "kinds/strategy_table.h"
#include "model/make_model.h"
#include "optimizer/learning_rate.h"
#include "optimizer/optimizer.h"
#include "transport/engine_table.h"

namespace cohort::job {
namespace {

// The rows of key_table.h. One row is
//
//   {"train.batch", in<&Job::train, &TrainOptions::batch>,    the path, and where the value is
//    "Samples of one step, all workers together.",            its meaning, for docs/job.md
//    between(1, kWidest)}                                     its limits
//
// Its type and its default are those of the member. Every number needs limits at both ends (a test
// says so): a sum or a product of what a file may say must have room in a number.

// ---- where a value is

/// The member of a member of a member: in<&Job::train, &TrainOptions::batch>(job) is
/// job.train.batch. Each is a plain function, so that a row needs no object behind it.
template <class Owner, auto... members>
auto& member_of(Owner& owner) {
  return (owner.*....*members);
}

template <class Owner, class Member>
Owner owner_of(Member Owner::*);

template <auto first, auto... rest>
constexpr auto in = &member_of<decltype(owner_of(first)), first, rest...>;

// ---- limits in one word each

Limits between(double least, double most) {
  Limits limits;
  limits.least = least;
  limits.most = most;
  return limits;
}

Limits choice(std::vector<std::string> choices) {
  Limits limits;
  limits.choices = std::move(choices);
  return limits;
}

/// The name of a file or folder in one that we choose.
Limits plain_name() {
  Limits limits;
  limits.plain_name = true;
  return limits;
}

// ---- the tables, section by section. The order is that of --print-config and of docs/job.md.

using Keys = std::vector<Key<Job>>;

/// Ranges that several keys have. They are far beyond what anybody trains, and near enough that no
/// product of two of them overflows.
constexpr double kSteps = data::kMostSteps;
constexpr double kWidest = 1 << 24;       // Features, channels, classes, samples of a batch.
constexpr double kLongestSide = 1 << 16;  // Windows and what is added around a picture.
constexpr double kMostProcesses = data::kMostParts;
constexpr double kLargestRate = 1e30;  // Of learning; floats end at 3e38.

/// What is trained, and on what. Whether a preset, a layer or a kind of data reads a key is said in
/// its meaning; check_job() refuses one that the preset does not read.
Keys model_and_data_keys() {
  return {
      {"job.name", in<&Job::name>, "What the run is called; its folder is named after it.",
       plain_name()},
      {"job.seed", in<&Job::seed>,
       "Fixes the first weights, the order of the samples and every other random number."},

      {"model.preset", in<&Job::model, &ModelOptions::preset>,
       "A ready network. Exactly one of `preset`, `layers` and `torchscript` is set.",
       choice(model::preset_names())},
      {"model.hidden", in<&Job::model, &ModelOptions::hidden>,
       "`mlp`: the widths of the layers between input and output.", between(1, kWidest)},
      {"model.width", in<&Job::model, &ModelOptions::width>,
       "`gpt-mini`, `resnet8`: the width; 0 is the preset's own.", between(0, kWidest)},
      {"model.depth", in<&Job::model, &ModelOptions::depth>,
       "`gpt-mini`: the number of transformer blocks; 0 is the preset's own.", between(0, 1000)},
      {"model.heads", in<&Job::model, &ModelOptions::heads>,
       "`gpt-mini`: attention heads of a block; 0 is the preset's own.", between(0, kLongestSide)},
      {"model.layers", in<&Job::model, &ModelOptions::layers>,
       "The network layer by layer; input sizes are inferred."},
      {"model.torchscript", in<&Job::model, &ModelOptions::torchscript>,
       "A TorchScript file to train. Loading one runs the code in it."},

      {"data.kind", in<&Job::data, &DataOptions::kind>, "Where the samples come from.",
       choice(data::data_kinds())},
      {"data.path", in<&Job::data, &DataOptions::path>,
       "The file, or for `mnist` the folder, seen from where the command is started."},
      {"data.validation_path", in<&Job::data, &DataOptions::validation_path>,
       "A second file to validate on; without it a part of the first is set aside."},
      {"data.validation_fraction", in<&Job::data, &DataOptions::validation_fraction>,
       "That part, for kinds that have no validation file.", between(0, 0.99)},
      {"data.target", in<&Job::data, &DataOptions::target>,
       "`csv`: the column to predict; by default the last."},
      {"data.header", in<&Job::data, &DataOptions::header>,
       "`csv`: the first line names the columns."},
      {"data.task", in<&Job::data, &DataOptions::task>,
       "`generated`: what is generated. `csv`, `libsvm`: whether the target is a class (`classes`, "
       "the default) or a number (`values`).",
       choice({"digits", "blobs", "regression", "classes", "values"})},
      {"data.samples", in<&Job::data, &DataOptions::samples>, "`generated`: how many samples.",
       between(1, 1e9)},
      {"data.features", in<&Job::data, &DataOptions::features>,
       "`generated`, `libsvm`: features of a sample; 0 is the task's own number, or the largest "
       "index in the file.",
       between(0, kWidest)},
      {"data.classes", in<&Job::data, &DataOptions::classes>,
       "`generated`: number of classes; 0 is the task's own.", between(0, kWidest)},
      {"data.context", in<&Job::data, &DataOptions::context>,
       "`text`: characters the model sees at a time.", between(1, kWidest)},
      {"data.noise", in<&Job::data, &DataOptions::noise>,
       "`generated`: how much chance there is in the samples.", between(0, 1e6)},
      {"data.unknown", in<&Job::data, &DataOptions::unknown>,
       "`csv`, `libsvm`, `text`: what a class or a character is that training never saw. With "
       "`accept` the model has one more, the unknown, which it then stands for.",
       choice({"error", "accept"})},
  };
}

/// How it is trained. Numbers of the optimizer are those of torch::optim, so that a job can be
/// compared with a script; 0 for epsilon stands for the default there, which differs by optimizer.
Keys train_keys() {
  return {
      {"train.epochs", in<&Job::train, &TrainOptions::epochs>,
       "Passes over the training samples. Exactly one of `epochs` and `steps` is set.",
       between(0, 1e9)},
      {"train.steps", in<&Job::train, &TrainOptions::steps>, "Updates of the parameters.",
       between(0, kSteps)},
      {"train.batch", in<&Job::train, &TrainOptions::batch>,
       "Samples of one step, all workers together.", between(1, kWidest)},
      {"train.loss", in<&Job::train, &TrainOptions::loss>, "What is made small.",
       choice({"cross-entropy", "mean-squared-error"})},
      {"train.optimizer.kind", in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::kind>,
       "The update rule; all numbers mean what they mean in torch::optim.",
       choice(names_of(optimizer::optimizer_table()))},
      {"train.optimizer.lr", in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::lr>,
       "The learning rate.", between(0, kLargestRate)},
      {"train.optimizer.momentum",
       in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::momentum>,
       "`sgd`: how much of the last update is kept.", between(0, 1)},
      {"train.optimizer.nesterov",
       in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::nesterov>,
       "`sgd`: Nesterov's form of momentum."},
      {"train.optimizer.weight_decay",
       in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::weight_decay>,
       "Pulls the weights towards zero.", between(0, kLargestRate)},
      {"train.optimizer.beta1", in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::beta1>,
       "`adam`, `adamw`: memory of the mean gradient.", between(0, 1)},
      {"train.optimizer.beta2", in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::beta2>,
       "`adam`, `adamw`: memory of the squared gradient.", between(0, 1)},
      {"train.optimizer.epsilon",
       in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::epsilon>,
       "`adam`, `adamw`, `adagrad`: keeps divisions finite; 0 is torch's default.",
       between(0, kLargestRate)},
      {"train.optimizer.lr_decay",
       in<&Job::train, &TrainOptions::optimizer, &OptimizerOptions::lr_decay>,
       "`adagrad`: how fast the rate falls.", between(0, kLargestRate)},
      {"train.schedule.kind", in<&Job::train, &TrainOptions::schedule, &ScheduleOptions::kind>,
       "How the learning rate changes.", choice(names_of(optimizer::schedule_table()))},
      {"train.schedule.warmup_steps",
       in<&Job::train, &TrainOptions::schedule, &ScheduleOptions::warmup_steps>,
       "The rate grows linearly over these first steps.", between(0, kSteps)},
      {"train.schedule.step_size",
       in<&Job::train, &TrainOptions::schedule, &ScheduleOptions::step_size>,
       "`step`: steps between two cuts of the rate.", between(0, kSteps)},
      {"train.schedule.gamma", in<&Job::train, &TrainOptions::schedule, &ScheduleOptions::gamma>,
       "`step`: what a cut multiplies the rate by.", between(0, kLargestRate)},
      {"train.schedule.final_lr",
       in<&Job::train, &TrainOptions::schedule, &ScheduleOptions::final_lr>,
       "`cosine`: the rate of the last step.", between(0, kLargestRate)},
      {"train.schedule.scale_by_workers",
       in<&Job::train, &TrainOptions::schedule, &ScheduleOptions::scale_by_workers>,
       "Multiply the rate by the number of workers."},
      {"train.clip_norm", in<&Job::train, &TrainOptions::clip_norm>,
       "The largest norm of all gradients together; 0 clips nothing.", between(0, kLargestRate)},
      {"train.accumulate", in<&Job::train, &TrainOptions::accumulate>,
       "Cut a step's batch into that many parts, computed one after the other to save memory.",
       between(1, kWidest)},
      {"train.validate", in<&Job::train, &TrainOptions::validate>,
       "When the validation set is looked at; `epoch` includes the end.",
       choice({"epoch", "end", "never"})},
  };
}

/// How workers train together. Which kind reads which key is in kinds/strategy_table.h, and
/// check_strategy() refuses those that the chosen kind does not read. A key counts as set where it
/// has another value than its default.
Keys strategy_keys() {
  using S = StrategyOptions;
  return {
      {"strategy.kind", in<&Job::strategy, &S::kind>,
       "How the workers agree on the parameters; docs/strategies.md compares the kinds.",
       choice(kinds::strategy_kinds())},
      {"strategy.algorithm", in<&Job::strategy, &S::algorithm>,
       "`allreduce`: how gradients are summed. `auto` takes the shared-memory path where it can.",
       choice(collective::all_reduce_algorithms())},
      {"strategy.bucket_bytes", in<&Job::strategy, &S::bucket_bytes>,
       "`allreduce`: gradients travel in pieces of about this size.", between(1, 1e12)},
      {"strategy.factors", in<&Job::strategy, &S::factors>,
       "`allreduce` by messages: of linear layers not the gradient of the weight travels but the "
       "two matrices it is the product of, where these are at most half as large; every worker "
       "multiplies. Exact, and for slow networks. If not given, it is so for large layers whose "
       "matrices are much smaller."},
      {"strategy.consistency", in<&Job::strategy, &S::consistency>,
       "`parameter-server`: update with all workers' gradients (`sync`), with each at once "
       "(`async`; `bounded` limits how far workers drift apart), or with the first few (`k-of-n`).",
       choice(kinds::ways_by("consistency"))},
      {"strategy.staleness", in<&Job::strategy, &S::staleness>,
       "`bounded`: steps that the fastest worker may be ahead of the slowest.", between(0, kSteps)},
      {"strategy.quorum", in<&Job::strategy, &S::quorum>,
       "`k-of-n` and partial averaging: how many pushes make an update.",
       between(0, kMostProcesses)},
      {"strategy.late", in<&Job::strategy, &S::late>,
       "`k-of-n` and partial averaging: what happens to a push that missed its update.",
       choice({"weight", "drop"})},
      {"strategy.push", in<&Job::strategy, &S::push>,
       "`parameter-server`: send gradients, or the change of the worker's own parameters.",
       choice({"gradient", "delta"})},
      {"strategy.local_steps", in<&Job::strategy, &S::local_steps>,
       "`parameter-server` with `push = \"delta\"`: own steps between two pushes.",
       between(1, kSteps)},
      {"strategy.weight", in<&Job::strategy, &S::weight>,
       "What a push is multiplied by whose parameters are `staleness` updates old.",
       choice({"none", "1/staleness", "(1+staleness)^-a"})},
      {"strategy.weight_power", in<&Job::strategy, &S::weight_power>,
       "The a of `(1+staleness)^-a`.", between(0, 1000)},
      {"strategy.replicas", in<&Job::strategy, &S::replicas>,
       "Strategies with servers: 2 keeps a copy of every shard on another server, brought up to "
       "date before a push is acknowledged.",
       between(1, 2)},
      {"strategy.mode", in<&Job::strategy, &S::mode>,
       "`averaging`: wait for all workers, or average as soon as `quorum` have arrived.",
       choice(kinds::ways_by("mode"))},
      {"strategy.every", in<&Job::strategy, &S::every>,
       "`averaging`: own steps between two averages; 0 averages once an epoch.",
       between(0, kSteps)},
      {"strategy.outer.kind", in<&Job::strategy, &S::outer, &OuterOptions::kind>,
       "`averaging`: what the centre does with the averaged change of the parameters.",
       choice({"mean", "momentum", "nesterov"})},
      {"strategy.outer.lr", in<&Job::strategy, &S::outer, &OuterOptions::lr>,
       "`averaging`: how much of the averaged change is taken over.", between(0, kLargestRate)},
      {"strategy.outer.momentum", in<&Job::strategy, &S::outer, &OuterOptions::momentum>,
       "`averaging` with `momentum` or `nesterov`: how much of the last change is kept.",
       between(0, 1)},
      {"strategy.send", in<&Job::strategy, &S::send>, "`gossip`: what workers tell each other.",
       choice(kinds::ways_by("send"))},
      {"strategy.topology", in<&Job::strategy, &S::topology>,
       "`gossip` with `send = \"parameters\"`: who tells whom.",
       choice(names_of(gossip::topology_table()))},
  };
}

/// Choices come from the tables of the rooms that know them, so that a new codec, optimizer or
/// topology needs no change here. `auto` is no codec, but a way to find one.
std::vector<std::string> codec_choices() {
  std::vector<std::string> names = compression::codec_kinds();
  names.emplace_back(compression::kAutoCodec);
  return names;
}

/// How what they send each other is made smaller. Read and refused as those of strategy_keys() are.
Keys compression_keys() {
  using S = StrategyOptions;
  return {
      {"strategy.compression.kind", in<&Job::strategy, &S::compression, &CompressionOptions::kind>,
       "How what travels is made smaller. `auto` measures what pays in the first steps.",
       choice(codec_choices())},
      {"strategy.compression.ratio",
       in<&Job::strategy, &S::compression, &CompressionOptions::ratio>,
       "`topk`: the share of the values that travels.", between(1e-6, 1)},
      {"strategy.compression.rank", in<&Job::strategy, &S::compression, &CompressionOptions::rank>,
       "`lowrank`: columns of the two factors a matrix is sent as.", between(1, 256)},
      {"strategy.compression.error_feedback",
       in<&Job::strategy, &S::compression, &CompressionOptions::error_feedback>,
       "Add what a message left out to the next one."},
      {"strategy.compression.momentum_correction",
       in<&Job::strategy, &S::compression, &CompressionOptions::momentum_correction>,
       "`topk` and `sign` with momentum: apply momentum before the codec, not after it."},
  };
}

/// By whom it is trained, and what is written meanwhile: tasks and their losses, logs, checkpoints.
Keys run_keys() {
  return {
      {"cluster.workers", in<&Job::cluster, &ClusterOptions::workers>,
       "Workers that share every batch.", between(1, kMostProcesses)},
      {"cluster.servers", in<&Job::cluster, &ClusterOptions::servers>,
       "Parameter servers, for strategies that use them.", between(0, kMostProcesses)},
      {"cluster.engine", in<&Job::cluster, &ClusterOptions::engine>,
       "What moves bytes between workers: shared memory, TCP, or threads of one process.",
       choice(transport::engine_names())},
      {"cluster.replication", in<&Job::cluster, &ClusterOptions::replication>,
       "`between-graph`: a process per worker; `in-graph`: a thread each in one process.",
       choice({"between-graph", "in-graph"})},
      {"cluster.timeout_seconds", in<&Job::cluster, &ClusterOptions::timeout_seconds>,
       "The longest wait for a worker before it is declared lost.", between(0.001, 1e6)},
      {"cluster.threads", in<&Job::cluster, &ClusterOptions::threads>,
       "BLAS and OpenMP threads of a worker; 0: the cores divided by the workers, fewer for small "
       "models.",
       between(0, kMostProcesses)},
      {"cluster.pin", in<&Job::cluster, &ClusterOptions::pin>,
       "Bind every worker to its share of the cores."},
      {"cluster.max_restarts", in<&Job::cluster, &ClusterOptions::max_restarts>,
       "How many lost tasks are replaced within ten minutes, before the run gives up.",
       between(0, 1e6)},
      {"cluster.min_workers", in<&Job::cluster, &ClusterOptions::min_workers>,
       "As long as so many workers are left they go on without the lost; 0 needs all.",
       between(0, kMostProcesses)},
      {"cluster.silence_warn_seconds", in<&Job::cluster, &ClusterOptions::silence_warn_seconds>,
       "A task that gives no sign of life for so long is warned of.", between(0.1, 1e6)},
      {"cluster.silence_lost_seconds", in<&Job::cluster, &ClusterOptions::silence_lost_seconds>,
       "A task that gives no sign of life for so long is declared lost.", between(0.1, 1e6)},

      {"log.every_steps", in<&Job::log, &LogOptions::every_steps>,
       "Steps between two lines of metrics.jsonl and of the event file.", between(1, kSteps)},
      {"log.tensorboard", in<&Job::log, &LogOptions::tensorboard>, "Write TensorBoard events."},
      {"log.histograms", in<&Job::log, &LogOptions::histograms>,
       "Histograms of the parameters in the event file, once an epoch."},
      {"log.trace", in<&Job::log, &LogOptions::trace>,
       "Write trace.json: what every worker did when (opens in Perfetto)."},

      {"checkpoint.every_steps", in<&Job::checkpoint, &CheckpointOptions::every_steps>,
       "Steps between two checkpoints; 0 writes none by steps.", between(0, kSteps)},
      {"checkpoint.every_seconds", in<&Job::checkpoint, &CheckpointOptions::every_seconds>,
       "Seconds between two checkpoints, also where `every_steps` is not reached; 0 writes none by "
       "time.",
       between(0, 1e9)},
      {"checkpoint.keep", in<&Job::checkpoint, &CheckpointOptions::keep>,
       "How many of the last checkpoints stay; two at least, so that one of them may be spoiled.",
       between(2, 1e6)},
  };
}

}  // namespace

const std::vector<Key<Job>>& job_keys() {
  static const Keys keys = [] {
    Keys all = model_and_data_keys();
    for (const Keys& more : {train_keys(), strategy_keys(), compression_keys(), run_keys()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return keys;
}

// A layer takes only some of these; model/layers/layer.h says which type takes which.
const std::vector<Key<LayerOptions>>& layer_option_keys() {
  static const std::vector<Key<LayerOptions>> keys = {
      {"type", in<&LayerOptions::type>, "What the layer does."},
      {"out", in<&LayerOptions::out>, "Features or channels of the output.", between(0, kWidest)},
      {"kernel", in<&LayerOptions::kernel>,
       "The side of the window that slides over the picture; 0 is 2 for maxpool and the whole "
       "picture for avgpool.",
       between(0, kLongestSide)},
      {"stride", in<&LayerOptions::stride>,
       "By how much it slides; 0 is 1 for conv2d and the kernel for pools.",
       between(0, kLongestSide)},
      {"padding", in<&LayerOptions::padding>, "Rows and columns added around the picture.",
       between(0, kLongestSide)},
      {"heads", in<&LayerOptions::heads>, "Attention heads.", between(0, kLongestSide)},
      {"vocabulary", in<&LayerOptions::vocabulary>,
       "How many different ids there are; 0 is the dataset's own number.", between(0, 1e9)},
      {"p", in<&LayerOptions::p>,
       "The share of values that are dropped: 0.5 for dropout, 0 for transformer by default.",
       between(0, 1)},
      {"bias", in<&LayerOptions::bias>, "Add a trained constant."},
      {"causal", in<&LayerOptions::causal>, "A position sees only those before it."},
      {"positions", in<&LayerOptions::positions>, "Add a trained vector for each position."},
      {"sparse", in<&LayerOptions::sparse>,
       "Parameter servers send and get only the rows a step touches."},
      {"layers", in<&LayerOptions::layers>, "The branch that is added to its own input."},
  };
  return keys;
}

}  // namespace cohort::job
