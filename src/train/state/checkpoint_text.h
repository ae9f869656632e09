#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/sampler.h"
#include "tensor/training_state.h"

namespace cohort::training {

/// What state.json of a checkpoint says: all that goes on with a training and is no tensor. There
/// are no random numbers to keep: each is a function of seed, epoch, step and row.
struct CheckpointText {
  std::int64_t step = 0;
  data::Cursor cursor = {};     ///< Where the order of samples goes on after these steps.
  cluster::WorkLeft work = {};  ///< Where work is handed out: pieces that are not done.
  std::int64_t updates = 0;     ///< Of the optimizer; see TrainingState.
  /// The job's, and what there was to train with. What differs when it goes on is a note, no error.
  std::uint64_t seed = 0;
  std::int64_t batch = 0;
  std::int64_t samples = 0;  ///< Of the training set.
  std::string optimizer;
  std::vector<std::string> slots = {};  ///< Names of what that optimizer keeps.
  std::string strategy;
  std::string compression;
  std::int64_t workers = 0;  ///< That took part.
};

/// What the file of a worker other than the chief says of its tensors.
struct WorkerText {
  std::int64_t step = 0;
  std::int64_t updates = 0;
  cluster::WorkLeft work = {};
};

std::string to_json(const CheckpointText& text);
std::string to_json(const WorkerText& text);

/// Throws Error(unsupported) for a later format, Error(corrupt) for what is none or has a number
/// that no training can have; both name `path`.
CheckpointText parse_checkpoint_text(const std::string& json, const std::filesystem::path& path);
WorkerText parse_worker_text(const std::string& json, const std::filesystem::path& path);

}  // namespace cohort::training
