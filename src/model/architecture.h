#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "model/layers/layer_plan.h"

namespace cohort::model {

/// How deep layers may nest, 1 being a plain list. In model.json each level is a list and an object
/// more, inside of two objects; the last one has its shapes in it.
inline constexpr int kDeepestLayers = (kDeepestJson - 3) / 2;

/// A network as a list of layers in JSON: of each its type, the options that type reads with every
/// default filled in, and the shapes it takes and gives. Presets are such lists too, so that
/// whoever reads one (export, another version of Cohort) need not know what a preset stood for.
///
///   {"type": "linear", "out": 10, "bias": true, "input": [128], "output": [10]}
///
/// A residual has its branch under "layers". It is part of model.json (artefact/, docs/model.md).
nlohmann::ordered_json to_json(const std::vector<LayerPlan>& plans);

/// The list under `key` of `fields`, planned anew for `spec`: what is trusted is what follows from
/// types and options; shapes in the text are only compared. The text may be anybody's: numbers have
/// limits, and nothing is allocated by them. Throws Error(corrupt) for what is no such list, or
/// where the shapes written down are not those that follow from it.
std::vector<LayerPlan> read_architecture(const JsonFields& fields, const char* key,
                                         const tensor::DataSpec& spec);

}  // namespace cohort::model
