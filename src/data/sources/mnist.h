#pragma once

#include "data/loaded_data.h"

namespace cohort {

/// Images in IDX files, or generated digits where there are none. See docs/data.md.
LoadedData load_mnist(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
