#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <filesystem>
#include <span>

#include "data/loaded_data.h"

namespace cohort {

/// The values of a contiguous tensor of that type.
template <class T>
std::span<const T> values_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

/// What a model was trained by and how far; all of it outlives the call.
struct TrainedBy {
  const Job& job;
  const LoadedData& data;
  std::int64_t step = 0;
  std::int64_t workers = 1;  ///< In the group that trains.
};

/// Writes `model.safetensors` and `model.json` (artefact/model_files.h) to the run's folder. Writes
/// nothing and returns false where a weight is not a finite number.
bool save_model(const std::filesystem::path& run_dir, Model& model, const TrainedBy& trained_by);

}  // namespace cohort
