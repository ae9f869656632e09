#pragma once

#include <string>
#include <vector>

#include "kernel/fast_settings.h"

namespace cohort {

/// Starts this program anew in the same process, with `settings` and their mark in its environment:
/// the same words, the same file, folder, standard input and output, and process id. Returns only
/// where that is not possible; then nothing has changed.
///
/// Call before anything is read from standard input and before there is work in threads, which end.
void run_again(const std::vector<Setting>& settings);

}  // namespace cohort
