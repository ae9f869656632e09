#pragma once

#include <cstdint>

#include "cluster/view.h"
#include "train/worker_life.h"

namespace cohort {

/// What the chief does in its group beside training: it has the logs, and saves the model. (Of
/// checkpoints every worker may have a part: session_checkpoints.h.) On other workers, and where
/// this host has no run folder, its calls do nothing.
class ChiefDuty {
 public:
  /// What it is made of; all of it outlives it.
  struct Parts {
    WorkerLife& life;
    const View& view;
    Model& model;
  };

  /// Takes the duty over from the chief before, or hands it over. `step`: the group begins with it.
  ChiefDuty(const Parts& parts, std::int64_t step);

  bool is_on() const { return on_; }

  /// False where the model has numbers that are not finite: then nothing is written.
  bool save_model_file(std::int64_t steps);

  /// The same, because the run is over or shall end.
  void save_last_model(std::int64_t steps);

 private:
  void take_over(std::int64_t step);
  std::int64_t logs_after(std::int64_t step) const;

  Parts parts_;
  bool on_;
};

}  // namespace cohort
