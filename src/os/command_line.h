#pragma once

#include <string>
#include <vector>

namespace cohort {

/// The words this process was started with, the program's name first. Throws Error(io) where /proc
/// cannot be read.
std::vector<std::string> command_line();

}  // namespace cohort
