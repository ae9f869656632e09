#pragma once

#include <cohort/model.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace cohort {

/// The values of a contiguous tensor of that type.
template <class T>
std::span<const T> values_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

/// Writes the parameters and buffers of a model to a safetensors file. Writes nothing and returns
/// false where one of them is not a finite number.
bool save_model(const std::filesystem::path& path, Model& model,
                const std::map<std::string, std::string>& metadata);

}  // namespace cohort
