#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <memory>

#include "tensor/data_spec.h"

namespace cohort {

/// The model a job asks for, on the CPU, in training mode. Its first weights are a function of
/// `seed` (a TorchScript file brings its own). Throws Error(invalid) unless exactly one of preset,
/// layers, torchscript and make is given, and where the network does not fit the data; all shapes
/// are checked before the first tensor is made.
std::unique_ptr<Model> make_model(const ModelOptions& options, const DataSpec& spec,
                                  std::uint64_t seed);

}  // namespace cohort
