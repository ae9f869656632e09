#include "train/state/start_state.h"

#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/log.h"
#include "checkpoint/checkpoint_folder.h"
#include "model/make_model.h"
#include "train/state/load_training.h"
#include "train/state/worker_file.h"

namespace cohort::training {
namespace {

namespace fs = std::filesystem;

std::optional<checkpoint::Checkpoint> newest_in(const fs::path& folder,
                                                std::vector<std::string>& notes,
                                                std::uint64_t most_bytes = checkpoint::kAnySize) {
  checkpoint::CheckpointFolder::Newest newest =
      checkpoint::CheckpointFolder(folder).newest(most_bytes);
  notes.insert(notes.end(), newest.notes.begin(), newest.notes.end());
  return std::move(newest.checkpoint);
}

}  // namespace

// Where a group goes on from when nobody in it has a state in memory: the newest whole checkpoint
// of this run, where it has made one, otherwise what the run itself was started from. The chief
// alone reads the model; the others read what only they had (part_from_disk), from the same
// checkpoint.
std::optional<tensor::TrainingState> state_from_disk(const WorkerRun& run,
                                                     const cluster::View& view, fs::path& from) {
  std::vector<std::string> notes;
  std::optional<checkpoint::Checkpoint> checkpoint;
  if (view.generation > 1 && !run.run_dir.empty()) {
    checkpoint = newest_in(run.run_dir / "checkpoints", notes);
  }
  if (!checkpoint && !run.start_from.empty()) checkpoint.emplace(run.start_from);
  for (const std::string& note : notes) log_warn("{}", note);
  if (!checkpoint) return std::nullopt;
  from = fs::absolute(checkpoint->path());
  const auto model = model::make_model(run.job.model, run.data.spec, run.job.seed);
  LoadedTraining loaded = load_training(*checkpoint, *model, run.job, run.data.train->size(),
                                        {.rank = 0, .world = view.world()});
  for (const std::string& note : loaded.notes) log_warn("{}", note);
  log_info("goes on from {} after step {}", checkpoint->path().string(), loaded.state.step);
  return std::move(loaded.state);
}

std::optional<tensor::TrainingState> part_from_disk(const WorkerRun& run, const WorkerPlace& place,
                                                    const fs::path& from) {
  try {
    const auto model = model::make_model(run.job.model, run.data.spec, run.job.seed);
    // Usually it is only its own file that it needs, and reads.
    const std::string own = worker_file_name(place.rank);
    const checkpoint::Checkpoint few(from, [&](const std::string& name) { return name == own; });
    if (saved_workers(few) == place.world) {
      return load_worker_part(few, *model, run.job, place);
    }
    return load_worker_part(checkpoint::Checkpoint(from), *model, run.job, place);
  } catch (const Error& error) {
    const bool out_of_reach = run.run_dir.empty() && !fs::exists(from);
    if (error.code() != ErrorCode::not_found || !out_of_reach) throw;
    log_warn("this worker's part of {} is out of its reach: {}", from.string(), error.what());
    return std::nullopt;
  }
}

std::uint64_t most_checkpoint_bytes(std::size_t model_floats) {
  // The files of all, and what each of many workers had.
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 30, kTimes = 100 + 16 * 1024;
  return kLeast + kTimes * sizeof(float) * model_floats;
}

// What --resume means. A folder with a manifest is a checkpoint, and is taken or refused as it is;
// otherwise it is a run's, whose newest whole one is taken. Broken ones that were passed over are
// told of.
fs::path find_checkpoint(const std::string& resume, const fs::path& run_dir,
                         std::uint64_t most_bytes, std::vector<std::string>& notes) {
  const bool automatic = resume == "auto";
  const fs::path named = automatic ? run_dir : fs::path(resume);
  if (fs::exists(named / "manifest.json")) {
    notes.push_back(fmt::format("going on from {}", named.string()));
    return checkpoint::Checkpoint(named, most_bytes).path();
  }
  const auto newest = newest_in(named / "checkpoints", notes, most_bytes);
  if (newest) {
    notes.push_back(
        fmt::format("going on from {} after step {}", newest->path().string(), newest->step()));
    return newest->path();
  }
  // Starting anew would in time remove what may only be unreadable now.
  if (!automatic || !checkpoint::CheckpointFolder(named / "checkpoints").all().empty()) {
    fail(ErrorCode::not_found, "--resume {}: there is no whole checkpoint in {}{}{}", resume,
         named.string(), notes.empty() ? "" : ". ", fmt::join(notes, " "));
  }
  notes.push_back(
      fmt::format("there is no checkpoint in {} yet: starting from the beginning", named.string()));
  return {};
}

}  // namespace cohort::training
