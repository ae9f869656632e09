#pragma once

#include <cohort/job.h>

#include <filesystem>
#include <string>
#include <vector>

namespace cohort::job {

/// The job as a file: what callers outside of this room use, beside check_job.h. How a key gets
/// from the file to the job and back is told in key_table.h.

/// The job in a TOML file. `overrides` are "a.b=value" as `--set` takes them, applied in their
/// order: the value is written as in TOML, and a bare word is a string.
///
/// Throws Error(not_found) for a missing file and Error(invalid) for what is not TOML, for an
/// unknown key (naming the nearest), a wrong type and a value outside its limits. The message
/// starts with "FILE:LINE: ", or with the `--set` it is about. Values that must fit each other are
/// check_job()'s business.
Job load_job(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});

/// The job as a file that load_job() reads back to the same job, with every key in it but those
/// that are empty by default and still are. The members a program sets itself (its own model,
/// dataset and loss) have no place in a file: a comment stands where they are.
std::string to_toml(const Job& job);

/// Every key with type, default and meaning, the types of layers, the strategies and the other
/// kinds of things a key can name, as the tables of docs/job.md. `cohort train --keys` prints it.
std::string key_reference();

}  // namespace cohort::job
