#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>

namespace cohort {

/// Makes `buffer` a tensor of `rows` samples of this shape and type, in the memory it has where
/// that is large enough.
void fit_buffer(torch::Tensor& buffer, std::size_t rows, at::IntArrayRef sample_shape,
                at::ScalarType type);

/// Throws Error(invalid) unless every index is one of `samples` samples.
void check_indices(std::span<const std::int64_t> indices, std::int64_t samples);

/// Rows `indices` of a contiguous tensor, byte by byte, to `buffer`.
void copy_rows(const torch::Tensor& from, std::span<const std::int64_t> indices,
               torch::Tensor& buffer);

}  // namespace cohort
