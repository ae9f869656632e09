#include "data/preprocessing/image_input.h"

#include "base/vectorize.h"

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

void ImageInput::scale(const std::uint8_t* pixels, float* input, std::size_t count) const {
  // On the scale of the bytes.
  normalise(pixels, input, count, static_cast<float>(mean * 255),
            static_cast<float>(1 / (deviation * 255)));
}

}  // namespace cohort
