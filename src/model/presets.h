#pragma once

#include <cohort/job.h>

#include <string>
#include <vector>

#include "tensor/data_spec.h"

namespace cohort {

/// The names `[model] preset` can have.
const std::vector<std::string>& preset_names();

/// The layers a preset stands for, with the sizes that `options` and the data give it. Throws
/// Error(invalid) for an unknown preset or data it is not made for.
std::vector<LayerOptions> preset_layers(const ModelOptions& options, const DataSpec& spec);

}  // namespace cohort
