#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace cohort {

/// Runs a program, found on PATH, in `folder`, without a shell, and waits for it. Throws Error:
/// unsupported where there is no such program, timeout where it does not end in time (it is killed,
/// with what it started), io where it fails; the message ends in the last line it printed.
void run_program(const std::vector<std::string>& command, const std::filesystem::path& folder,
                 Deadline deadline);

}  // namespace cohort
