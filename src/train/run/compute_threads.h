#pragma once

#include <cohort/job.h>

#include <optional>

#include "os/cores.h"
#include "tensor/data_spec.h"

// The cores and threads of a process that computes. In the order of a process' life: the launcher
// forbids threads before it forks; a worker, once forked, gets its share of the cores.

namespace cohort::training {

/// Call in the launcher before it computes anything: no library may start a thread there, because
/// threads do not survive fork().
void forbid_compute_threads();

/// What the number of a worker's threads depends on where the user has chosen none.
struct ThreadChoice {
  int cores = 1;          ///< Of this host, that its workers may use.
  int local_workers = 1;  ///< That share them.
  /// Multiplications of a worker's part of a batch on its way forward, where they are known.
  std::optional<double> part_work = {};
};

/// A worker's threads: one for each core of its share, but no more than have something to do. A
/// thread that is woken for too little costs more time than it saves.
///
/// A function of the job and the machine alone, never of a measurement: how a product is cut among
/// threads can change its last bits, and the same job must give the same bytes.
int threads_for(const ThreadChoice& choice);

/// A worker's part of a batch, as ThreadChoice counts it.
std::optional<double> part_work(const Job& job, const tensor::DataSpec& spec);

/// The BLAS and OpenMP threads of a worker: what the job says, or the user's OMP_NUM_THREADS, or
/// threads_for().
int threads_of_worker(const ClusterOptions& cluster, const ThreadChoice& choice);

/// Gives this worker its share of the cores: binds the process to them (where `bind`; threads of
/// one process share its cores) and tells BLAS and OpenMP how many threads to use. `part_work`: see
/// ThreadChoice.
void set_compute_threads(const ClusterOptions& cluster, const os::LocalPlace& place,
                         std::optional<double> part_work, bool bind);

}  // namespace cohort::training
