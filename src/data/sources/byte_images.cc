#include "data/sources/byte_images.h"

#include <utility>

#include "data/batch_buffer.h"

namespace cohort {

ByteImages::ByteImages(torch::Tensor pixels, torch::Tensor labels)
    : pixels_(std::move(pixels)), labels_(std::move(labels)) {}

Batch ByteImages::gather(std::span<const std::int64_t> indices) const {
  Batch batch;
  gather_into(indices, batch);
  return batch;
}

void ByteImages::gather_into(std::span<const std::int64_t> indices, Batch& into) const {
  check_indices(indices, size());
  fit_buffer(into.input, indices.size(), pixels_.sizes().slice(1), torch::kFloat32);
  copy_rows(labels_, indices, into.target);
  const auto image = static_cast<std::size_t>(pixels_.stride(0));
  const auto* bytes = pixels_.data_ptr<std::uint8_t>();
  auto* floats = into.input.data_ptr<float>();
  for (const std::int64_t index : indices) {
    scaling_.scale(bytes + static_cast<std::size_t>(index) * image, floats, image);
    floats += image;
  }
}

}  // namespace cohort
