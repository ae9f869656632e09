#include "train/save_model.h"

#include <cmath>

#include "checkpoint/safetensors.h"

namespace cohort {
namespace {

void add_entries(std::vector<TensorView>& views, const FlatLayout& layout,
                 std::span<const float> values) {
  for (const FlatEntry& entry : layout.entries) {
    views.push_back({entry.name, entry.shape, values.subspan(entry.offset, entry.count)});
  }
}

}  // namespace

bool save_model(const std::filesystem::path& path, const FlatSpace& space, Model& model,
                const std::map<std::string, std::string>& metadata) {
  const auto parameters = space.memory().parameters;
  if (!std::all_of(parameters.begin(), parameters.end(),
                   [](float value) { return std::isfinite(value); })) {
    return false;
  }
  std::vector<TensorView> views;
  add_entries(views, space.layout().parameters, parameters);
  add_entries(views, space.layout().buffers, space.memory().buffers);
  for (const auto& [name, tensor] : model.buffers()) {
    if (tensor.scalar_type() != torch::kInt64 || !tensor.is_contiguous()) continue;
    const std::span<const std::int64_t> values(tensor.data_ptr<std::int64_t>(),
                                               static_cast<std::size_t>(tensor.numel()));
    views.push_back({name, tensor.sizes().vec(), values});
  }
  write_safetensors(path, views, metadata);
  return true;
}

}  // namespace cohort
