#include "data/batch_buffer.h"

#include <cstring>

#include "base/fail.h"

namespace cohort {

void fit_buffer(torch::Tensor& buffer, std::size_t rows, at::IntArrayRef sample_shape,
                at::ScalarType type) {
  c10::SmallVector<std::int64_t, 5> shape{static_cast<std::int64_t>(rows)};
  shape.append(sample_shape.begin(), sample_shape.end());
  if (!buffer.defined() || buffer.scalar_type() != type || !buffer.is_contiguous()) {
    buffer = torch::empty(shape, type);
  } else if (buffer.sizes() != at::IntArrayRef(shape)) {
    buffer.resize_(shape);
  }
}

void check_indices(std::span<const std::int64_t> indices, std::int64_t samples) {
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= samples) {
      fail(ErrorCode::invalid, "there is no sample {} in a dataset of {}", index, samples);
    }
  }
}

void copy_rows(const torch::Tensor& from, std::span<const std::int64_t> indices,
               torch::Tensor& buffer) {
  fit_buffer(buffer, indices.size(), from.sizes().slice(1), from.scalar_type());
  const std::size_t row_bytes =
      from.size(0) == 0 ? 0 : from.nbytes() / static_cast<std::size_t>(from.size(0));
  const auto* source = static_cast<const std::byte*>(from.data_ptr());
  auto* target = static_cast<std::byte*>(buffer.data_ptr());
  for (const std::int64_t index : indices) {
    std::memcpy(target, source + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    target += row_bytes;
  }
}

}  // namespace cohort
