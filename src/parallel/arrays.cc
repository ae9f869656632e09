#include "parallel/arrays.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/fail.h"
#include "group/call.h"

namespace cohort::parallel {
namespace {

using collective::ElementType;

constexpr std::array<std::pair<torch::ScalarType, ElementType>, 7> kTypes = {{
    {torch::kFloat32, ElementType::f32},
    {torch::kFloat64, ElementType::f64},
    {torch::kBFloat16, ElementType::bf16},
    {torch::kInt32, ElementType::i32},
    {torch::kInt64, ElementType::i64},
    {torch::kUInt8, ElementType::u8},
    {torch::kBool, ElementType::boolean},
}};

torch::ScalarType scalar_type_of(ElementType type) {
  for (const auto& [scalar, element] : kTypes) {
    if (element == type) return scalar;
  }
  return torch::kUInt8;
}

void check_tensor(const torch::Tensor& tensor, const char* call) {
  if (!tensor.defined()) fail(ErrorCode::invalid, "{} of a tensor that is undefined", call);
  if (!tensor.device().is_cpu() || tensor.layout() != torch::kStrided) {
    fail(ErrorCode::invalid, "{} of a tensor on {}: only dense tensors on the CPU are taken", call,
         tensor.layout() == torch::kStrided ? tensor.device().str() : "the CPU that is sparse");
  }
  element_type_of(tensor.scalar_type(), call);
}

/// Keeps a tensor alive as what arrays keep alive.
std::shared_ptr<const void> hold_of(const torch::Tensor& tensor) {
  return std::make_shared<const torch::Tensor>(tensor);
}

}  // namespace

collective::ElementType element_type_of(torch::ScalarType type, const char* call) {
  for (const auto& [scalar, element] : kTypes) {
    if (scalar == type) return element;
  }
  fail(ErrorCode::invalid,
       "{} of a tensor of {}: only float32, float64, bfloat16, int32, int64, uint8 and bool are "
       "taken",
       call, torch::toString(type));
}

group::Array array_of(const torch::Tensor& tensor, const char* call) {
  check_tensor(tensor, call);
  if (!tensor.is_contiguous()) {
    fail(ErrorCode::invalid,
         "{} changes its tensor, which is not contiguous: give tensor.contiguous(), and copy the "
         "result back",
         call);
  }
  const auto sizes = tensor.sizes();
  return {.bytes = {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()},
          .type = element_type_of(tensor.scalar_type(), call),
          .shape = {sizes.begin(), sizes.end()},
          .hold = hold_of(tensor)};
}

std::vector<group::Array> arrays_of(const std::vector<torch::Tensor>& tensors, const char* call) {
  std::vector<group::Array> arrays;
  arrays.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) arrays.push_back(array_of(tensor, call));
  return arrays;
}

torch::Tensor contiguous(const torch::Tensor& tensor, const char* call) {
  check_tensor(tensor, call);
  return tensor.detach().contiguous();
}

torch::Tensor tensor_in(const group::Array& array) {
  const auto options = torch::TensorOptions().dtype(scalar_type_of(array.type));
  return torch::from_blob(
      array.bytes.data(), array.shape, [hold = array.hold](void*) {}, options);
}

group::Array array_of(std::string& bytes) {
  return {.bytes = std::as_writable_bytes(std::span(bytes)),
          .type = ElementType::u8,
          .shape = {static_cast<std::int64_t>(bytes.size())}};
}

}  // namespace cohort::parallel
