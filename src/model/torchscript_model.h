#pragma once

#include <cohort/model.h>

#include <memory>
#include <string>

namespace cohort {

/// The model in a TorchScript file, with the weights saved in it. Loading runs code of that file.
/// Throws Error(not_found), or Error(corrupt) where the file is not TorchScript, or
/// Error(unsupported) where it has no parameter to train or one that is not float32.
std::unique_ptr<Model> load_torchscript(const std::string& path);

}  // namespace cohort
