#pragma once

#include <cohort/job.h>

namespace cohort {

/// Everything that can be known to be wrong with a job before its data and model are made. Throws
/// Error(invalid) naming the key and what would be right. For jobs from a file and from a program.
void check_job(const Job& job);

}  // namespace cohort
