#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/layers/layer_plan.h"
#include "tensor/data_spec.h"

namespace cohort {

/// The model a job asks for, on the CPU, in training mode. Its first weights are a function of
/// `seed` (a TorchScript file brings its own). Throws Error(invalid) unless exactly one of preset,
/// layers, torchscript and make is given, and where the network does not fit the data; all shapes
/// are checked before the first tensor is made.
std::unique_ptr<Model> make_model(const ModelOptions& options, const DataSpec& spec,
                                  std::uint64_t seed);

/// The layers of a model that is given by a preset or by layers, each with its shapes. Throws as
/// make_model does.
std::vector<LayerPlan> plan_model(const ModelOptions& options, const DataSpec& spec);

/// A model of layers that were planned, with whatever first weights torch draws.
std::unique_ptr<Model> make_layers(const std::vector<LayerPlan>& plans);

}  // namespace cohort
