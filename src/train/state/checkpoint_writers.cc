#include "train/state/checkpoint_writers.h"

#include "base/activity.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/log.h"
#include "os/file_lock.h"

namespace cohort::training {
namespace {

std::string saved_sentence(std::int64_t step, const std::filesystem::path& path, double seconds) {
  return fmt::format("checkpoint of step {} saved in {:.3f} s: {}", step, seconds, path.string());
}

/// What an earlier chief has written last; one that died in writing the next left that to do.
std::optional<std::int64_t> newest_step(const checkpoint::CheckpointFolder& folder) {
  const auto all = folder.all();
  if (all.empty()) return std::nullopt;
  const std::string name = all.front().filename().string();
  return std::stoll(name.substr(name.find('-') + 1));
}

}  // namespace

bool asks_for_checkpoints(const CheckpointOptions& options) {
  return options.every_steps > 0 || options.every_seconds > 0;
}

ChiefCheckpoints::ChiefCheckpoints(const std::filesystem::path& run_dir, const Job& job)
    : job_(job), folder_(run_dir / "checkpoints", job.checkpoint.keep) {}

// Asked before every step. A checkpoint that is still being written makes none due: a disk that is
// slower than the checkpoints are wanted gets fewer of them, and never a queue. `saved_step_` is
// not the step that was saved but the one that was asked about then: where nobody goes in step, the
// model that was saved may have come further.
bool ChiefCheckpoints::due(std::int64_t step, Clock::time_point now) {
  const CheckpointOptions& options = job_.checkpoint;
  if (!saved_step_) saved_step_ = std::min(newest_step(folder_).value_or(step - 1), step - 1);
  asked_step_ = step;
  report_finished();
  // Not every worker takes part in every step, so it is those steps that pass a multiple.
  const bool by_steps =
      options.every_steps > 0 && step / options.every_steps > *saved_step_ / options.every_steps;
  const bool by_time =
      options.every_seconds > 0 &&
      std::chrono::duration<double>(now - saved_at_).count() >= options.every_seconds;
  return (by_steps || by_time) && !writer_.busy();
}

void ChiefCheckpoints::save(const CheckpointPlace& place, Model& model, const Fill& fill,
                            checkpoint::OtherParts others) {
  fill_snapshot(place, model, fill, std::move(others));
  writer_.start([this] { return write(); });
}

void ChiefCheckpoints::save_now(const CheckpointPlace& place, Model& model, const Fill& fill,
                                checkpoint::OtherParts others) {
  fill_snapshot(place, model, fill, std::move(others));
  const auto start = Clock::now();
  const std::filesystem::path path = write();
  log_info("{}", saved_sentence(snapshot_.state().step, path, seconds_since(start)));
}

void ChiefCheckpoints::finish(const CheckpointPlace& place, Model& model, const Fill& fill,
                              checkpoint::OtherParts others) {
  if (!asks_for_checkpoints(job_.checkpoint)) return;
  try {
    save_now(place, model, fill, std::move(others));
  } catch (const Error& error) {
    log_warn("the checkpoint of the end could not be saved: {}", error.what());
  }
}

// On the thread of the writer, or the worker's where the run ends. Only one chief writes at a time,
// by a lock in the folder: the chief before may be an old process that hangs on its disk. A chief
// that has lost its duty gives up, also while it waits for parts of others.
std::filesystem::path ChiefCheckpoints::write() {
  create_folder(folder_.path());
  const os::FileLock lock(folder_.path() / ".lock", Deadline::in(kLongestWork),
                          [this] { return !has_duty_; });
  // Got without waiting, but too late: the next chief may have written a newer one by now.
  if (!has_duty_) {
    fail(ErrorCode::cancelled, "another worker has become chief");
  }
  checkpoint::OtherParts others = others_;
  if (others.give_up) {
    others.give_up = [this, lost = others_.give_up] { return ends_ || !has_duty_ || lost(); };
  }
  return folder_.write(snapshot_.content(), others);
}

void ChiefCheckpoints::take_over() {
  if (has_duty_.exchange(true)) return;
  saved_step_.reset();  // Others have saved since.
  saved_at_ = Clock::now();
}

void ChiefCheckpoints::wait_until_written() {
  if (!writer_.wait(Deadline::in(kLongestWork))) {
    fail(ErrorCode::timeout, "the checkpoint of step {} is still being written after {} minutes",
         snapshot_.state().step,
         std::chrono::duration_cast<std::chrono::minutes>(kLongestWork).count());
  }
  report_finished();
}

void ChiefCheckpoints::fill_snapshot(const CheckpointPlace& place, Model& model, const Fill& fill,
                                     checkpoint::OtherParts others) {
  wait_until_written();
  others_ = std::move(others);
  fill(snapshot_.state());
  snapshot_.describe(model, job_, place);
  saved_step_ = asked_step_;
  saved_at_ = Clock::now();
}

void ChiefCheckpoints::report_finished() {
  const auto result = writer_.take_result();
  if (!result) return;
  const std::int64_t step = snapshot_.state().step;
  if (result->failure) {
    log_warn("the checkpoint of step {} could not be saved: {}; training goes on", step,
             result->failure->what());
  } else {
    log_info("{}", saved_sentence(step, result->path, result->seconds));
  }
}

// The chief waits for this part, so it hears of every end that it can come to: the file, or a
// refusal. Only a worker that dies says neither, and that is seen by others (OtherParts::give_up).
void WorkerParts::save(const checkpoint::JointCheckpoint& joint, int rank, Model& model,
                       const Fill& fill) {
  report_finished();
  if (writer_.busy()) {
    return refuse(joint, rank, "its part of the checkpoint before is still being written");
  }
  fill_snapshot(model, fill);
  writer_.start([this, joint, rank] {
    const checkpoint::CheckpointContent::File file = file_of(joint, rank);
    checkpoint::write_part(joint, rank, {&file, 1});
    return joint.folder / file.name;
  });
}

void WorkerParts::refuse(const checkpoint::JointCheckpoint& joint, int rank,
                         const std::string& why) {
  try {
    checkpoint::refuse_part(joint, rank, why);
  } catch (const Error& error) {
    log_warn("the chief could not be told that a part is missing: {}", error.what());
  }
}

checkpoint::CheckpointContent::File WorkerParts::file_of(const checkpoint::JointCheckpoint& joint,
                                                         int rank) const {
  try {
    return worker_file(rank, state_, names_);
  } catch (const std::exception& error) {
    refuse(joint, rank, error.what());
    throw;
  }
}

void WorkerParts::save_now(const checkpoint::JointCheckpoint& joint, int rank, Model& model,
                           const Fill& fill) {
  wait_until_written();
  save(joint, rank, model, fill);
  wait_until_written();
}

void WorkerParts::wait_until_written() {
  writer_.wait(Deadline::in(kLongestWork));
  report_finished();
}

void WorkerParts::fill_snapshot(Model& model, const Fill& fill) {
  fill(state_);
  names_ = StateNames::of(model, job_);
}

void WorkerParts::report_finished() {
  const auto result = writer_.take_result();
  if (!result || !result->failure) return;
  log_warn("this worker's part of a checkpoint could not be saved: {}; training goes on",
           result->failure->what());
}

}  // namespace cohort::training
