#pragma once

#include <cohort/model.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "artefact/artefact.h"
#include "base/files.h"

namespace cohort::artefact {

/// The two files of a model in a folder, as one thing: writing them, checking that they belong
/// together (the artefact is sealed with size and checksum of the weights), and making a model of
/// them. Files of others are read with care: links are refused, sizes are compared before memory is
/// taken, and no code of theirs runs unless a caller brings the very file it was trained from.
/// Functions keep no state; a folder that is being written to is either the old pair, the new one,
/// or refused.

/// Writes `model.safetensors` and then `model.json` to the folder, each atomically, and fills in
/// which weights are meant. Should the process die between the two, the pair is one that does not
/// belong together, and loading says so. Writes nothing and returns false where a weight is not a
/// finite number. Throws Error(io) or Error(no_space).
bool save_model_files(const std::filesystem::path& folder, Model& model, Artefact artefact,
                      const std::map<std::string, std::string>& metadata);

/// The artefact of the model in a folder. Throws Error(not_found) with a sentence for a folder that
/// is none of a run, and for one whose run wrote no model.json; otherwise as parse_artefact does.
Artefact read_artefact(const std::filesystem::path& folder);

/// Gives `model` the weights beside the artefact. Throws Error(corrupt) where they are not those
/// the artefact is sealed with, before any is read; Error(invalid) where the model has other
/// tensors.
void load_weights(const std::filesystem::path& folder, const Artefact& artefact, Model& model);

/// The model of an artefact that is a list of layers, with its weights, not in training mode.
/// Throws Error(invalid) for one that has to be brought along.
std::unique_ptr<Model> make_trained_model(const std::filesystem::path& folder,
                                          const Artefact& artefact);

/// The same of an artefact that is a TorchScript file, which must be the very file that was
/// trained: its code is run. Throws Error(invalid) otherwise.
std::unique_ptr<Model> make_script_model(const std::filesystem::path& folder,
                                         const Artefact& artefact,
                                         const std::filesystem::path& script);

/// The size and checksum of a whole file, which is read piece by piece.
WeightsSeal seal_of(const std::filesystem::path& path, Links links);

}  // namespace cohort::artefact
