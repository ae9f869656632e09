#pragma once

#include <cohort/train.h>

#include <string>

namespace cohort {

/// summary.json's content: every field of the summary under its own name, but for run_dir and
/// exit_code, which are not the run's business.
std::string to_json(const Summary& summary);

/// The other way, also from another process' file. Throws Error(corrupt) naming `source` where it
/// is not what to_json() makes.
Summary summary_from_json(const std::string& text, const std::string& source);

}  // namespace cohort
