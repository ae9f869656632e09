#pragma once

#include <cohort/dataset.h>

#include <memory>

namespace cohort {

struct DigitOptions {
  std::int64_t samples = 10000;
  std::int64_t classes = 10;  ///< The digits 0 … classes-1, equally often.
  double noise = 0.1;         ///< The largest change of a pixel, as a part of full brightness.
  std::uint64_t seed = 1;
  std::uint64_t part = 0;  ///< Other digits of the same seed.
};

/// Images of 1x28x28 that look like MNIST's: digits drawn with a pen of random width, moved,
/// stretched, slanted and shaky, on a noisy ground. Scaled like MNIST's too.
std::shared_ptr<const Dataset> make_digits(const DigitOptions& options);

}  // namespace cohort
