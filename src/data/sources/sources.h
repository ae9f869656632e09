#pragma once

#include <cohort/dataset.h>

#include <cstdint>
#include <memory>

#include "data/load_data.h"

namespace cohort::data {

/// Where samples come from: a function for each kind of data, named in the table of load_data.cc,
/// and digits that two of them draw. docs/data.md describes every kind.
///
/// Loaders of text files work alike. They check options first, read the training file, set
/// validation samples aside (split_samples) or read a second file, learn what there is to learn,
/// and convert everything through that (data/preprocessing/), so that scoring makes the same inputs
/// of the same rows. Files may be anybody's: nothing is allocated by a number in them before it was
/// compared with the file's size or with memory. Errors are those of load_data(), and name file and
/// line.

/// Images in IDX files, or generated digits where there are none.
LoadedData load_mnist(const DataOptions& options, std::uint64_t seed);

/// A table of numbers, one sample per line.
LoadedData load_csv(const DataOptions& options, std::uint64_t seed);

/// Lines of 'label index:value …', made dense.
LoadedData load_libsvm(const DataOptions& options, std::uint64_t seed);

/// The characters of a file, each predicted from those before it. Without a second file the end of
/// the text validates, whatever the seed.
LoadedData load_text(const DataOptions& options, std::uint64_t seed);

/// Samples made by arithmetic: digits, blobs, regression.
LoadedData load_generated(const DataOptions& options, std::uint64_t seed);

/// A program's own datasets. Shapes come from a sample; the number of classes and the vocabulary
/// from the largest id (of a TensorDataset: of all samples; otherwise of at most 10,000 spread over
/// the set), or from `options.classes`. Without an own validation set, a part is set aside.
LoadedData load_own_data(const DataOptions& options, std::uint64_t seed);

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

}  // namespace cohort::data
