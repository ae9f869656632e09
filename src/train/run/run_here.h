#pragma once

#include <cohort/run.h>

#include <functional>
#include <string>

#include "train/run/run_plan.h"

namespace cohort::training {

/// Told that the run has its folder, and after how many steps it goes on.
using OnRunFolder = std::function<void(const std::string& run_dir, std::int64_t after_step)>;

/// Runs the job with this process as its launcher, from the job to the summary:
///
///   read the data, look at the model, find the checkpoint to go on from, make the run folder
///   → on_folder → fork the workers and servers, watch and replace them (launch/launch.h)
///   → put together what they report (reports.h) → summary.json
///
/// It takes this process' signals, and forks. So nothing else may go on in it, and nothing may have
/// been computed with several threads: threads do not survive fork().
///
/// `on_folder` is called once the run has its folder, where it has one here, with the steps that it
/// goes on after: its metrics.jsonl has lines of no others yet. Throws Error where the run cannot
/// begin; what happens to it later is in the summary.
Summary run_here(const Job& job, const RunOptions& options, const Variables& environment,
                 const OnRunFolder& on_folder);

}  // namespace cohort::training
