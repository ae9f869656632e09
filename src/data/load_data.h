#pragma once

#include <string>
#include <vector>

#include "data/loaded_data.h"

namespace cohort {

/// The names `[data] kind` can have.
std::vector<std::string> data_kinds();

/// The samples a job trains and validates on. The same options and seed give the same data.
/// Throws Error: invalid for options or file contents that make no sense, corrupt for a file that
/// fails its checks, not_found for one that is not there. docs/data.md describes every kind.
LoadedData load_data(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort
