#pragma once

#include "data/loaded_data.h"

namespace cohort {

/// The characters of a file, each predicted from those before it. See docs/data.md.
LoadedData load_text(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
