#include "job/check_job.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/fail.h"
#include "base/names.h"
#include "job/key_table.h"
#include "model/architecture.h"
#include "model/layers/layer.h"
#include "optimizer/learning_rate.h"
#include "optimizer/optimizer.h"
#include "transport/engine_table.h"

namespace cohort::job {
namespace {

/// Layers in layers, level by level; `path` is what messages call the list:
/// "model.layers[2].layers".
void check_layers(const std::vector<LayerOptions>& layers, const std::string& path, int level = 1) {
  if (level > model::kDeepestLayers && !layers.empty()) {
    fail(ErrorCode::invalid, "{} is {} lists of layers deep; model.json has room for {}", path,
         level, model::kDeepestLayers);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", path, i + 1);
    check_known(name + ".type", layers[i].type, model::layer_types());
    for (const Key<LayerOptions>& key : layer_option_keys()) {
      check_limits(key, layers[i], name + "." + key.path);
    }
    check_layers(layers[i].layers, name + ".layers", level + 1);
  }
}

/// A key that the chosen preset does not read would be a wish silently not granted. Here, unlike
/// for strategies, 0 and the empty list stand for "not set".
void check_preset_keys(const ModelOptions& model) {
  struct Use {
    const char* key;
    bool set;
    std::vector<std::string> presets;
  };
  const std::vector<Use> uses = {
      {"hidden", !model.hidden.empty(), {"mlp"}},
      {"width", model.width != 0, {"gpt-mini", "resnet8"}},
      {"depth", model.depth != 0, {"gpt-mini"}},
      {"heads", model.heads != 0, {"gpt-mini"}},
  };
  for (const Use& use : uses) {
    bool read = false;
    for (const std::string& preset : use.presets) read = read || preset == model.preset;
    if (use.set && !read) {
      fail(ErrorCode::invalid, "model.{} is set, but only the preset {} reads it", use.key,
           one_of(use.presets));
    }
  }
}

/// A job has its model from exactly one source; model.make is a program's own.
void check_model(const ModelOptions& model) {
  const int sources = int{!model.preset.empty()} + int{!model.layers.empty()} +
                      int{!model.torchscript.empty()} + int{model.make != nullptr};
  if (sources == 0) {
    fail(ErrorCode::invalid,
         "the job has no model; set one of model.preset, model.layers and model.torchscript");
  }
  if (sources > 1) {
    fail(ErrorCode::invalid,
         "the job has more than one model; set only one of model.preset, model.layers and "
         "model.torchscript");
  }
  check_preset_keys(model);
  check_layers(model.layers, "model.layers");
}

/// A file with a target in every line, which may be a class or a number; data.task says which of
/// them.
bool is_table(const DataOptions& data) {
  return data.kind == "csv" || data.kind == "libsvm";
}

/// What each kind of data needs; nothing of a program's own dataset.
void check_data(const DataOptions& data) {
  if (data.own_train) return;
  if (data.kind == "generated") {
    check_known("data.task", data.task, {"digits", "blobs", "regression"});
  }
  if (is_table(data) && data.task != DataOptions().task) {
    check_known("data.task", data.task, {"classes", "values"});
  }
  if ((is_table(data) || data.kind == "text") && data.path.empty()) {
    fail(ErrorCode::invalid, "data.kind is \"{}\", so data.path must name the file", data.kind);
  }
  const bool has_names = data.kind == "text" || (is_table(data) && data.task != "values");
  if (data.unknown == "accept" && !has_names) {
    fail(ErrorCode::invalid,
         "data.unknown is \"accept\", but {} has no classes or characters that could be unknown",
         is_table(data) ? "data.task \"values\"" : fmt::format("data.kind \"{}\"", data.kind));
  }
}

void check_length(const TrainOptions& train) {
  if (train.epochs == 0 && train.steps == 0) {
    fail(ErrorCode::invalid,
         "the job does not say how long to train; set train.epochs or train.steps");
  }
  if (train.epochs != 0 && train.steps != 0) {
    fail(ErrorCode::invalid, "train.epochs = {} and train.steps = {} are both set; set only one",
         train.epochs, train.steps);
  }
}

/// Every worker must have at least one sample of every part of every batch.
void check_batch(std::int64_t batch, std::int64_t accumulate, std::int64_t workers) {
  if (batch < workers) {
    fail(ErrorCode::invalid,
         "a batch of {} cannot be shared by {} workers; make train.batch at least {} or "
         "cluster.workers smaller",
         batch, workers, workers);
  }
  if (batch / accumulate < workers) {
    fail(ErrorCode::invalid,
         "a batch of {} cut into {} parts (train.accumulate) leaves {} samples in a part, which "
         "cannot be shared by {} workers; make train.accumulate at most {}",
         batch, accumulate, batch / accumulate, workers, batch / workers);
  }
}

/// The loss must fit what there is to predict, unless loss or data are a program's own.
void check_loss(const Job& job) {
  if (job.train.own_loss || job.data.own_train) return;
  const DataOptions& data = job.data;
  const bool values = (data.kind == "generated" && data.task == "regression") ||
                      (is_table(data) && data.task == "values");
  const std::string fitting = values ? "mean-squared-error" : "cross-entropy";
  if (job.train.loss == fitting) return;
  fail(ErrorCode::invalid,
       "train.loss is \"{}\", but the data has {} to predict, which need \"{}\"", job.train.loss,
       values ? "numbers" : "classes", fitting);
}

/// Which engines there are depends on whether workers are threads or processes.
void check_cluster(const ClusterOptions& cluster) {
  const bool threads = cluster.replication == "in-graph";
  const std::vector<std::string> fitting = transport::engine_names(threads);
  for (const std::string& engine : fitting) {
    if (engine == cluster.engine) return;
  }
  fail(ErrorCode::invalid,
       "cluster.engine \"{}\" does not fit cluster.replication \"{}\", whose workers are {}; it "
       "can be {}",
       cluster.engine, cluster.replication, threads ? "threads" : "processes", one_of(fitting));
}

/// How losses of tasks are managed, not of training.
void check_losses(const ClusterOptions& cluster) {
  if (cluster.min_workers > cluster.workers) {
    fail(ErrorCode::invalid, "cluster.min_workers is {}, more than the {} workers there are",
         cluster.min_workers, cluster.workers);
  }
  if (cluster.silence_lost_seconds < cluster.silence_warn_seconds) {
    fail(ErrorCode::invalid,
         "cluster.silence_lost_seconds is {}, before the warning at cluster.silence_warn_seconds = "
         "{}; make it larger",
         cluster.silence_lost_seconds, cluster.silence_warn_seconds);
  }
}

}  // namespace

void check_job(const Job& job) {
  for (const Key<Job>& key : job_keys()) check_limits(key, job, key.path);
  check_model(job.model);
  check_data(job.data);
  check_length(job.train);
  check_batch(job.train.batch, job.train.accumulate, job.cluster.workers);
  check_loss(job);
  optimizer::make_optimizer(
      job.train.optimizer);  // Throws where it cannot be made; what is made is not kept.
  optimizer::check_schedule(job.train.schedule);
  check_cluster(job.cluster);
  check_losses(job.cluster);
  check_strategy(job);
}

}  // namespace cohort::job
