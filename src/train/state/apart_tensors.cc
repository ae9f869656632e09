#include "train/state/apart_tensors.h"

#include <cstring>
#include <set>

namespace cohort::training {
namespace {

/// Where type and size are the tensor's; otherwise it stays as it is.
void put_values(const tensor::ApartTensor& values, torch::Tensor& tensor) {
  const torch::NoGradGuard no_graph;
  std::visit(
      [&](const auto& numbers) {
        using T = typename std::decay_t<decltype(numbers)>::value_type;
        if (tensor.scalar_type() != torch::CppTypeToScalarType<T>::value) return;
        if (static_cast<std::size_t>(tensor.numel()) != numbers.size()) return;
        auto* data = const_cast<T*>(numbers.data());
        tensor.copy_(torch::from_blob(data, tensor.sizes(), tensor.scalar_type()));
      },
      values);
}

/// As whole numbers, whose sum with zeros is themselves to the bit.
std::vector<std::int64_t> bits_of(const torch::Tensor& tensor) {
  const torch::Tensor whole = tensor.detach().contiguous();
  std::vector<std::int64_t> bits(static_cast<std::size_t>(whole.numel()));
  if (whole.scalar_type() == torch::kInt64) {
    const auto values = values_of<std::int64_t>(whole);
    std::copy(values.begin(), values.end(), bits.begin());
    return bits;
  }
  const auto values = values_of<float>(whole);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::int32_t one = 0;
    std::memcpy(&one, &values[i], sizeof one);
    bits[i] = one;
  }
  return bits;
}

void put_bits(const std::vector<std::int64_t>& bits, torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kInt64) return put_values(bits, tensor);
  std::vector<float> values(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto one = static_cast<std::int32_t>(bits[i]);
    std::memcpy(&values[i], &one, sizeof one);
  }
  put_values(values, tensor);
}

}  // namespace

bool can_be_saved(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat32 || tensor.scalar_type() == torch::kInt64;
}

// What a model has beside its trained floats and float buffers: parameters that are frozen, and
// counters such as batch norm's. No strategy carries them, as they are not summed or averaged; they
// are saved by name, and at the start of a group the chief's become everybody's.
std::vector<NamedTensor> apart_tensors(Model& model) {
  const tensor::ModelLayout layout = tensor::ModelLayout::of(model);
  std::set<std::string> flat;
  for (const tensor::FlatEntry& entry : layout.parameters.entries) flat.insert(entry.name);
  for (const tensor::FlatEntry& entry : layout.buffers.entries) flat.insert(entry.name);
  std::set<const c10::TensorImpl*> seen;
  std::vector<NamedTensor> apart;
  for (const auto& list : {model.parameters(), model.buffers()}) {
    for (const NamedTensor& named : list) {
      const bool first = seen.insert(named.tensor.unsafeGetTensorImpl()).second;
      if (first && !flat.contains(named.name) && can_be_saved(named.tensor)) apart.push_back(named);
    }
  }
  return apart;
}

void save_apart(Model& model, tensor::TrainingState& state) {
  state.apart.clear();
  for (const auto& [name, tensor] : apart_tensors(model)) {
    const torch::Tensor whole = tensor.detach().contiguous();
    if (whole.scalar_type() == torch::kInt64) {
      const auto values = values_of<std::int64_t>(whole);
      state.apart[name] = std::vector<std::int64_t>(values.begin(), values.end());
    } else {
      const auto values = values_of<float>(whole);
      state.apart[name] = std::vector<float>(values.begin(), values.end());
    }
  }
}

// A strategy can sum over the workers, and nothing else is needed: all but the chief give zeros.
void share_apart(Model& model, strategy::Strategy& strategy, const tensor::TrainingState* start,
                 bool is_chief) {
  std::vector<NamedTensor> tensors = apart_tensors(model);
  if (tensors.empty()) return;
  const bool has = is_chief && start != nullptr && !start->apart.empty();
  if (!strategy.any_worker(has)) return;
  for (NamedTensor& named : tensors) {
    if (has) {
      const auto found = start->apart.find(named.name);
      if (found != start->apart.end()) put_values(found->second, named.tensor);
    }
    std::vector<std::int64_t> bits = bits_of(named.tensor);
    if (!is_chief) std::ranges::fill(bits, 0);
    strategy.sum_over_workers(bits);
    put_bits(bits, named.tensor);
  }
}

}  // namespace cohort::training
