#pragma once

#include <cohort/job.h>

#include <optional>

#include "launch/process_plan.h"
#include "tensor/data_spec.h"
#include "train/run/thread_rule.h"

namespace cohort {

/// Call in the launcher before it computes anything: no library may start a thread there, because
/// threads do not survive fork().
void forbid_compute_threads();

/// A worker's part of a batch, as ThreadChoice counts it.
std::optional<double> part_work(const Job& job, const DataSpec& spec);

/// The BLAS and OpenMP threads of a worker: what the job says, or the user's OMP_NUM_THREADS, or
/// what thread_rule.h chooses.
int threads_of_worker(const ClusterOptions& cluster, const ThreadChoice& choice);

/// Gives this worker its share of the cores: binds the process to them (where `bind`; threads of
/// one process share its cores) and tells BLAS and OpenMP how many threads to use. `part_work`: see
/// ThreadChoice.
void set_compute_threads(const ClusterOptions& cluster, const LocalPlace& place,
                         std::optional<double> part_work, bool bind);

/// Makes malloc keep and reuse large blocks. By default it returns each to the system and gets
/// fresh, zeroed pages for the next, which costs a training step up to a third of its time.
void keep_large_blocks();

}  // namespace cohort
