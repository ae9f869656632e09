#pragma once

#include <string>
#include <variant>
#include <vector>

#include "data/preprocessing/image_input.h"
#include "data/preprocessing/sparse_input.h"
#include "data/preprocessing/table_input.h"
#include "data/preprocessing/targets.h"
#include "data/preprocessing/text_input.h"

namespace cohort {

/// Samples that were numbers from the start: generated, or a program's own.
struct PlainInput {};

/// Everything that loading data learned and that a raw row needs to become a model's input, and a
/// model's output to get its name. A value of its own: loaders fill it while they load and read
/// their files through it, the artefact of a model stores it, and whoever scores has no other way
/// from a raw row to an input. So training and scoring cannot drift apart.
struct Preprocessing {
  std::variant<PlainInput, TableInput, SparseInput, ImageInput, TextInput> input;
  Targets targets = Targets::values(1);

  /// Of text the characters; empty where values are predicted.
  std::vector<std::string> class_names() const {
    const auto* text = std::get_if<TextInput>(&input);
    return text != nullptr ? text->vocabulary.names() : targets.names();
  }
};

}  // namespace cohort
