#pragma once

#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "data/preprocessing/preprocessing.h"
#include "tensor/data_spec.h"

namespace cohort {

/// Preprocessing as JSON and back, to the same floats; docs/model.md describes it.
nlohmann::ordered_json to_json(const Preprocessing& preprocessing);

/// Throws Error(corrupt) for what is no preprocessing, or not one whose inputs and outputs are
/// those of `spec`.
Preprocessing read_preprocessing(const JsonFields& fields, const DataSpec& spec);

}  // namespace cohort
