#pragma once

#include <optional>

namespace cohort {

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

}  // namespace cohort
