#pragma once

#include "data/loaded_data.h"

namespace cohort {

/// Lines of 'label index:value …', made dense. See docs/data.md.
LoadedData load_libsvm(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
