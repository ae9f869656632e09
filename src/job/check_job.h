#pragma once

#include <cohort/job.h>

namespace cohort::job {

/// Everything that can be known to be wrong with a job before its data and model are made. For jobs
/// from a file and from a program alike, so it repeats the checks of single values that reading a
/// file has made: command line options may have changed them since. In this order, and the first
/// that does not hold is told:
///
///   each value   its limits, by the table of keys (key_table.h)
///   model        exactly one source; keys that the preset reads; the types and depth of layers
///   data         what its kind needs
///   training     how long; a batch that all workers can share; a loss that fits the data; whether
///                optimizer and schedule can be made
///   cluster      an engine that fits how workers are replicated; no numbers that contradict
///   strategy     check_strategy()
///
/// Shapes and the content of files are not looked at: model/ and data/ do that when they are made.
/// Throws Error(invalid) naming the key and what would be right.
void check_job(const Job& job);

/// The last part of check_job(): throws Error(invalid) for a strategy whose keys do not go
/// together, or not with the rest of the job, saying what would be valid. A key of `[strategy]`
/// that the chosen kind does not read must have its default: it would be a wish silently not
/// granted.
void check_strategy(const Job& job);

}  // namespace cohort::job
