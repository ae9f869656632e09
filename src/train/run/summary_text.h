#pragma once

#include <cohort/train.h>

#include <string>

namespace cohort::training {

/// A run's summary as text: JSON for programs (summary.json, and the last message of a launcher to
/// its caller), words for the user.

/// summary.json's content: every field of the summary under its own name, but for run_dir and
/// exit_code, which are not the run's business. What there is not is null. Texts that are not UTF-8
/// have their wrong bytes replaced.
std::string to_json(const Summary& summary);

/// The other way, also from another process' file. Throws Error(corrupt) naming `source` where it
/// is not what to_json() makes.
Summary summary_from_json(const std::string& text, const std::string& source);

/// The last lines that the user sees: how it ended, how fast it was, what each worker's time went
/// to where there are several, and where the run folder is.
std::string closing_line(const Summary& summary);

}  // namespace cohort::training
