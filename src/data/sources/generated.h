#pragma once

#include "data/loaded_data.h"

namespace cohort {

/// Samples made by arithmetic: digits, blobs, regression. See docs/data.md.
LoadedData load_generated(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
