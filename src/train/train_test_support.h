#pragma once

#include <cohort/train.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace cohort::training {

/// What a test wants of a run: the final weights, and how it went.
struct TrainedModel {
  Summary summary;
  std::map<std::string, std::vector<float>> tensors;
  std::string file;  ///< The bytes of model.safetensors.
};

/// 50 steps over 70 pictures of digits in batches of 16: every fifth batch has only 6.
inline Job small_digits_job(const ModelOptions& model) {
  Job job;
  job.name = "parity";
  job.seed = 11;
  job.model = model;
  job.data.kind = "generated";
  job.data.task = "digits";
  job.data.samples = 78;  // A tenth is set aside: 70 remain.
  job.train.steps = 50;
  job.train.batch = 16;
  job.train.validate = "end";
  job.train.optimizer.lr = 0.02;
  job.train.optimizer.momentum = 0.9;
  job.log.tensorboard = false;
  job.cluster.timeout_seconds = 60;
  return job;
}

inline TrainedModel train_for_test(const Job& job) {
  const TemporaryFolder folder;
  const auto run_dir = folder.path() / "run";
  TrainedModel result;
  result.summary = train(job, {.run_dir = run_dir.string(), .quiet = true});
  for (const std::string& failure : result.summary.failures) ADD_FAILURE() << failure;
  const auto path = run_dir / "model.safetensors";
  if (!std::filesystem::exists(path)) return result;
  const checkpoint::SafetensorsFile file = checkpoint::read_safetensors(path);
  for (const checkpoint::StoredTensor& tensor : file.tensors()) {
    if (tensor.dtype != checkpoint::SafetensorsDtype::f32) continue;
    const auto values = file.floats(tensor.name);
    result.tensors[tensor.name] = {values.begin(), values.end()};
  }
  result.file = read_file(path);
  return result;
}

/// The largest difference between two models' tensors; infinite where they do not match.
inline double distance(const TrainedModel& a, const TrainedModel& b) {
  if (a.tensors.empty() || a.tensors.size() != b.tensors.size()) return INFINITY;
  double largest = 0;
  for (const auto& [name, values] : a.tensors) {
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end() || other->second.size() != values.size()) return INFINITY;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(values[i] - other->second[i]);
      if (!(difference <= largest)) largest = difference;  // Also true for NaN.
    }
  }
  return largest;
}

}  // namespace cohort::training
