#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "data/preprocessing/inputs.h"
#include "data/preprocessing/targets.h"
#include "tensor/data_spec.h"

namespace cohort {
class JsonFields;
}  // namespace cohort

namespace cohort::data {

/// Samples that were numbers from the start: generated, or a program's own.
struct PlainInput {};

/// Everything that loading data learned and that a raw row needs to become a model's input, and a
/// model's output to get its name. A value of its own: loaders fill it while they load and read
/// their files through it, the artefact of a model stores it, and whoever scores has no other way
/// from a raw row to an input. So training and scoring cannot drift apart.
///
///   load_data() ── learns ──► Preprocessing ── to_json() ──► model.json
///                                  ▲                             │
///   raw rows ── input_of(), open_rows() ── inputs      read_preprocessing()
struct Preprocessing {
  std::variant<PlainInput, TableInput, SparseInput, ImageInput, TextInput> input;
  Targets targets = Targets::values(1);

  /// Of text the characters; empty where values are predicted.
  std::vector<std::string> class_names() const {
    const auto* text = std::get_if<TextInput>(&input);
    return text != nullptr ? text->vocabulary.names() : targets.names();
  }
};

/// Preprocessing as JSON and back, to the same floats; docs/model.md describes it. Text has no
/// targets of its own: they are its characters.
nlohmann::ordered_json to_json(const Preprocessing& preprocessing);

/// The text may be anybody's, so nothing is allocated by a number in it. Throws Error(corrupt) for
/// what is no preprocessing, or not one whose inputs and outputs are those of `spec`.
Preprocessing read_preprocessing(const JsonFields& fields, const tensor::DataSpec& spec);

}  // namespace cohort::data
