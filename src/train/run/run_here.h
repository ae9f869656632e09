#pragma once

#include <cohort/run.h>

#include <functional>
#include <map>
#include <string>

namespace cohort {

/// Throws Error where the job cannot run as it is; `environment` as in StartOptions.
void check_run(const Job& job, const std::map<std::string, std::string>& environment);

using OnRunFolder = std::function<void(const std::string& run_dir, std::int64_t after_step)>;

/// Runs the job with this process as its launcher: it starts the workers by fork(), watches them
/// and takes this process' signals. So nothing else may go on in it, and nothing may have been
/// computed with several threads. `on_folder` is called once the run has its folder, where it has
/// one here, with the steps that it goes on after: its metrics.jsonl has lines of no others yet.
Summary run_here(const Job& job, const RunOptions& options,
                 const std::map<std::string, std::string>& environment,
                 const OnRunFolder& on_folder);

}  // namespace cohort
