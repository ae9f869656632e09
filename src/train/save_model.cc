#include "train/save_model.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/safetensors.h"

namespace cohort {
namespace {

bool is_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

}  // namespace

bool save_model(const std::filesystem::path& path, Model& model,
                const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> tensors = model.parameters();
  for (NamedTensor& buffer : model.buffers()) tensors.push_back(std::move(buffer));
  std::vector<TensorView> views;
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.detach().contiguous();
    if (tensor.scalar_type() == torch::kFloat32) {
      const auto values = values_of<float>(tensor);
      if (!is_finite(values)) return false;
      views.push_back({name, tensor.sizes().vec(), values});
    } else if (tensor.scalar_type() == torch::kInt64) {
      views.push_back({name, tensor.sizes().vec(), values_of<std::int64_t>(tensor)});
    }
  }
  write_safetensors(path, views, metadata);
  return true;
}

}  // namespace cohort
