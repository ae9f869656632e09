#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "group/array.h"

namespace cohort::parallel {

/// Tensors as the group room has them: memory of one type and shape. All throw Error(invalid), which
/// names `call`, for tensors that are not on the CPU or of a type that no call takes.

/// The tensor's own memory, which the call changes: it must be contiguous. The array keeps it alive.
group::Array array_of(const torch::Tensor& tensor, const char* call);
std::vector<group::Array> arrays_of(const std::vector<torch::Tensor>& tensors, const char* call);

/// A contiguous copy where it is not contiguous already; for calls that only read.
torch::Tensor contiguous(const torch::Tensor& tensor, const char* call);

/// A tensor in the array's memory, which it keeps alive.
torch::Tensor tensor_in(const group::Array& array);

/// Bytes as an array of one dimension. The text must outlive it.
group::Array array_of(std::string& bytes);

collective::ElementType element_type_of(torch::ScalarType type, const char* call);

}  // namespace cohort::parallel
