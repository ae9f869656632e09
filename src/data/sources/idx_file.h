#pragma once

#include <torch/torch.h>

#include <filesystem>

namespace cohort {

/// The bytes of an IDX file (the format of MNIST), as a uint8 tensor of `dimensions` dimensions.
/// The file is mapped, not read: workers of one machine share its memory, and it must not be
/// changed in place while the tensor lives. Throws Error(corrupt) naming the file, what was
/// expected and what was found.
torch::Tensor read_idx(const std::filesystem::path& path, int dimensions);

}  // namespace cohort
