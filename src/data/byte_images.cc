#include "data/byte_images.h"

#include <utility>

#include "base/vectorize.h"
#include "data/batch_buffer.h"

namespace cohort {
namespace {

/// Subtracting before multiplying cannot be fused into one instruction, so the floats are the same
/// on every machine.
COHORT_VECTORIZE
void normalise(const std::uint8_t* bytes, float* floats, std::size_t count, float centre,
               float factor) {
  for (std::size_t i = 0; i < count; ++i) {
    floats[i] = (static_cast<float>(bytes[i]) - centre) * factor;
  }
}

}  // namespace

ByteImages::ByteImages(torch::Tensor pixels, torch::Tensor labels, double mean, double deviation)
    : pixels_(std::move(pixels)),
      labels_(std::move(labels)),
      centre_(static_cast<float>(mean * 255)),
      factor_(static_cast<float>(1 / (deviation * 255))) {}

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
    normalise(bytes + static_cast<std::size_t>(index) * image, floats, image, centre_, factor_);
    floats += image;
  }
}

}  // namespace cohort
