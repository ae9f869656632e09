#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/layers/layer_plan.h"
#include "tensor/data_spec.h"

namespace cohort::model {

/// The way from what a job says of its network ([model]) to a Model, and what can be known of it
/// before. A job names its network in exactly one of four ways:
///
///   preset = "lenet"         preset_layers()    ┐
///   layers = [ … ]                              ├ plan_model() ─ make_layers()
///   torchscript = "net.pt"   load_torchscript() ┘ cannot be planned: nobody can look into it
///   make (of a program)      called as it is, likewise
///
/// All functions may be called on any thread. Those that draw first weights (make_model) take
/// turns, since torch has one generator for the process; make_layers and load_torchscript do not.

/// The model a job asks for, on the CPU, in training mode. Its first weights are a function of
/// `seed` (a TorchScript file brings its own). Throws Error(invalid) unless exactly one of preset,
/// layers, torchscript and make is given, and where the network does not fit the data; all shapes
/// are checked before the first tensor is made. Of a TorchScript file as load_torchscript throws.
std::unique_ptr<Model> make_model(const ModelOptions& options, const tensor::DataSpec& spec,
                                  std::uint64_t seed);

/// The layers of a model that is given by a preset or by layers, each with its shapes. Throws as
/// make_model does.
std::vector<LayerPlan> plan_model(const ModelOptions& options, const tensor::DataSpec& spec);

/// A model of layers that were planned, with whatever first weights torch draws.
std::unique_ptr<Model> make_layers(const std::vector<LayerPlan>& plans);

/// The multiplications of a sample's way forward through the model, about: every weight of a layer
/// counts once for each position it is applied at. Nothing for a TorchScript file or a program's
/// own model, into which nobody can look. Throws Error(invalid) as make_model() does.
std::optional<double> multiply_adds(const ModelOptions& options, const tensor::DataSpec& spec);

/// The names `[model] preset` can have.
const std::vector<std::string>& preset_names();

/// The layers a preset stands for, with the sizes that `options` and the data give it. Throws
/// Error(invalid) for an unknown preset or data it is not made for.
std::vector<LayerOptions> preset_layers(const ModelOptions& options, const tensor::DataSpec& spec);

/// The model in a TorchScript file, with the weights saved in it. Loading runs code of that file.
/// Throws Error(not_found), or Error(corrupt) where the file is not TorchScript, or
/// Error(unsupported) where it has no parameter to train or one that is not float32.
std::unique_ptr<Model> load_torchscript(const std::string& path);

}  // namespace cohort::model
