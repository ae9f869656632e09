#include "tensor/flat_layout.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "tensor/table_rows.h"

namespace cohort::tensor {
namespace {

constexpr std::size_t kFloatsPerLine = 16;  // 64 bytes

std::size_t round_up(std::size_t count) {
  return (count + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

// A tensor that a model has under two names (tied weights) has one place.
void keep_firsts(std::vector<NamedTensor>& tensors) {
  std::set<const c10::TensorImpl*> seen;
  std::erase_if(tensors, [&](const NamedTensor& named) {
    return !seen.insert(named.tensor.unsafeGetTensorImpl()).second;
  });
}

void copy_to(std::span<float> memory, const FlatLayout& layout,
             const std::vector<NamedTensor>& tensors) {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    view_of(memory, layout.entries[i]).copy_(tensors[i].tensor);
  }
}

}  // namespace

FlatLayout FlatLayout::of(const std::vector<NamedTensor>& tensors) {
  FlatLayout layout;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.scalar_type() != torch::kFloat32 || tensor.layout() != torch::kStrided ||
        !tensor.device().is_cpu()) {
      fail(ErrorCode::unsupported,
           "parameter {} is {} on {}; Cohort trains dense float32 on the CPU", name,
           c10::toString(tensor.scalar_type()), tensor.device().str());
    }
    const auto count = static_cast<std::size_t>(tensor.numel());
    layout.entries.push_back({name, tensor.sizes().vec(), layout.size, count});
    layout.size += round_up(count);
  }
  return layout;
}

std::vector<NamedTensor> trained_parameters(Model& model, Tables tables) {
  std::vector<NamedTensor> parameters = model.parameters();
  std::erase_if(parameters, [&](const NamedTensor& named) {
    return !named.tensor.requires_grad() ||
           (tables == Tables::apart && TableMark::has(named.tensor));
  });
  keep_firsts(parameters);
  return parameters;
}

std::vector<NamedTensor> float_buffers(Model& model) {
  std::vector<NamedTensor> buffers = model.buffers();
  std::erase_if(buffers, [](const NamedTensor& buffer) {
    return buffer.tensor.scalar_type() != torch::kFloat32;
  });
  keep_firsts(buffers);
  return buffers;
}

std::vector<NamedTensor> tables_of(Model& model) {
  std::vector<NamedTensor> tables = trained_parameters(model, Tables::among_parameters);
  std::erase_if(tables, [](const NamedTensor& named) { return !TableMark::has(named.tensor); });
  return tables;
}

ModelLayout ModelLayout::of(Model& model, Tables tables) {
  return {FlatLayout::of(trained_parameters(model, tables)), FlatLayout::of(float_buffers(model))};
}

torch::Tensor view_of(std::span<float> memory, const FlatEntry& entry) {
  return torch::from_blob(memory.data() + entry.offset, entry.shape, torch::kFloat32);
}

void copy_values(Model& model, const FlatMemory& memory, Tables tables) {
  const ModelLayout layout = ModelLayout::of(model, tables);
  copy_to(memory.parameters, layout.parameters, trained_parameters(model, tables));
  copy_to(memory.buffers, layout.buffers, float_buffers(model));
}

}  // namespace cohort::tensor
