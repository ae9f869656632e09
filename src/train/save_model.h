#pragma once

#include <cohort/model.h>

#include <filesystem>
#include <map>
#include <string>

#include "tensor/flat_space.h"

namespace cohort {

/// Writes the parameters and buffers of a model to a safetensors file. Writes nothing and returns
/// false where a parameter is not a finite number.
bool save_model(const std::filesystem::path& path, const FlatSpace& space, Model& model,
                const std::map<std::string, std::string>& metadata);

}  // namespace cohort
