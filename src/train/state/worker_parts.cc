#include "train/state/worker_parts.h"

#include "base/activity.h"
#include "base/log.h"

namespace cohort {

void WorkerParts::save(const JointCheckpoint& joint, int rank, Model& model, const Fill& fill) {
  report_finished();
  if (writer_.busy()) {
    return refuse(joint, rank, "its part of the checkpoint before is still being written");
  }
  fill_snapshot(model, fill);
  writer_.start([this, joint, rank] {
    const CheckpointContent::File file = file_of(joint, rank);
    write_part(joint, rank, {&file, 1});
    return joint.folder / file.name;
  });
}

void WorkerParts::refuse(const JointCheckpoint& joint, int rank, const std::string& why) {
  try {
    refuse_part(joint, rank, why);
  } catch (const Error& error) {
    log_warn("the chief could not be told that a part is missing: {}", error.what());
  }
}

CheckpointContent::File WorkerParts::file_of(const JointCheckpoint& joint, int rank) const {
  try {
    return worker_file(rank, state_, names_);
  } catch (const std::exception& error) {
    refuse(joint, rank, error.what());
    throw;
  }
}

void WorkerParts::save_now(const JointCheckpoint& joint, int rank, Model& model, const Fill& fill) {
  settle();
  save(joint, rank, model, fill);
  settle();
}

void WorkerParts::settle() {
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

}  // namespace cohort
