#pragma once

#include <cohort/job.h>

#include <optional>

#include "tensor/data_spec.h"

namespace cohort {

/// The multiplications of a sample's way forward through the model, about: every weight of a layer
/// counts once for each position it is applied at. Nothing for a TorchScript file or a program's
/// own model, into which nobody can look. Throws Error(invalid) as make_model() does.
std::optional<double> multiply_adds(const ModelOptions& options, const DataSpec& spec);

}  // namespace cohort
