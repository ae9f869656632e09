#pragma once

#include <filesystem>
#include <vector>

namespace cohort {

/// The seconds each checkpoint of a run took from its beginning in the background until it was
/// saved, as the chief's log says.
std::vector<double> saved_checkpoints(const std::filesystem::path& run_dir);

}  // namespace cohort
