#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <filesystem>

#include "cluster/membership.h"
#include "data/load_data.h"
#include "train/worker_life.h"

namespace cohort::training {

/// What a model was trained by and how far; all of it outlives the call.
struct TrainedBy {
  const Job& job;
  const data::LoadedData& data;
  std::int64_t step = 0;
  std::int64_t workers = 1;  ///< In the group that trains.
};

/// Writes `model.safetensors` and `model.json` (artefact/model_files.h) to the run's folder. Writes
/// nothing and returns false where a weight is not a finite number. Throws Error naming the file
/// where it cannot be written.
bool save_model(const std::filesystem::path& run_dir, Model& model, const TrainedBy& trained_by);

/// What the chief (rank 0) does in its group beside training: it has the logs and the checkpoints,
/// and saves the model. (Of checkpoints every worker may have a part: session_checkpoints.h.) On
/// other workers, and where this host has no run folder, its calls do nothing.
///
/// Every worker makes one at the start of every group. That is how the duty goes from one to the
/// other: the new chief opens the log and cuts it to where the group begins, the old one closes its
/// own and gives up the checkpoints it has not begun to write.
class ChiefDuty {
 public:
  /// What it is made of; all of it outlives it.
  struct Context {
    WorkerLife& life;
    const cluster::View& view;
    Model& model;
  };

  /// Takes the duty over from the chief before, or hands it over. `step`: the group begins with it.
  ChiefDuty(const Context& context, std::int64_t step);

  bool is_on() const { return on_; }

  /// False where the model has numbers that are not finite: then nothing is written.
  bool save_model_file(std::int64_t steps);

  /// The same, because the run is over or shall end: the launcher sees that it is being saved and
  /// waits for it.
  void save_last_model(std::int64_t steps);

 private:
  void take_over(std::int64_t step);
  std::int64_t logs_after(std::int64_t step) const;

  Context context_;
  bool on_;  // This worker is the chief, and the run folder is here.
};

}  // namespace cohort::training
