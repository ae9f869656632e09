#pragma once

#include "data/loaded_data.h"

namespace cohort {

/// A program's own datasets. Shapes come from a sample; the number of classes and the vocabulary
/// from the largest id (of a TensorDataset: of all samples; otherwise of at most 10,000 spread over
/// the set), or from `options.classes`. Without an own validation set, a part is set aside.
LoadedData load_own_data(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
