#pragma once

#include "data/loaded_data.h"

namespace cohort {

/// A table of numbers, one sample per line. See docs/data.md.
LoadedData load_csv(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
