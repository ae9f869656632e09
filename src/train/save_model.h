#pragma once

#include <cohort/model.h>

#include <filesystem>
#include <map>
#include <string>

namespace cohort {

/// Writes the parameters and buffers of a model to a safetensors file. Writes nothing and returns
/// false where one of them is not a finite number.
bool save_model(const std::filesystem::path& path, Model& model,
                const std::map<std::string, std::string>& metadata);

}  // namespace cohort
