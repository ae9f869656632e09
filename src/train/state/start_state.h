#pragma once

#include <optional>

#include "tensor/training_state.h"
#include "train/state/load_training.h"
#include "train/worker.h"

// What a training starts from: the launcher finds the checkpoint that the user means
// (find_checkpoint), before there are workers; the chief of a group that has nothing loads it
// (state_from_disk); and where it does, the other workers load their parts of the same one
// (part_from_disk).

namespace cohort::training {

/// What a chief starts from that has nothing itself: in the first group the checkpoint that the
/// user named, if any; later, when everybody was lost, the newest one of this run, or where it has
/// written none yet again the user's. `from` becomes its path; it stays as it is where there is
/// none. Throws Error where it is of another model.
std::optional<tensor::TrainingState> state_from_disk(const WorkerRun& run,
                                                     const cluster::View& view,
                                                     std::filesystem::path& from);

/// What another worker goes on from, where the chief goes on from this checkpoint: its part.
/// Nothing where there is none for it, or the folder is out of this host's reach.
std::optional<tensor::TrainingState> part_from_disk(const WorkerRun& run, const WorkerPlace& place,
                                                    const std::filesystem::path& from);

/// The checkpoint that `--resume` means: with `auto` the newest of the run in `run_dir`, if there
/// is any; otherwise that of the run, or the checkpoint, in the folder `resume`. Broken ones are
/// passed over; `notes` gets a sentence for each, and one that says what is gone on from. Those of
/// more than `most_bytes` are not read. Throws Error where a folder was named and has none.
std::filesystem::path find_checkpoint(const std::string& resume,
                                      const std::filesystem::path& run_dir,
                                      std::uint64_t most_bytes, std::vector<std::string>& notes);

/// Far more than a checkpoint can have that is of use to a model of so many floats.
std::uint64_t most_checkpoint_bytes(std::size_t model_floats);

}  // namespace cohort::training
