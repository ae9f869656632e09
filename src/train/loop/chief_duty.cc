#include "train/loop/chief_duty.h"

#include "kinds/strategy_table.h"
#include "train/loop/save_model.h"

namespace cohort {

ChiefDuty::ChiefDuty(const Parts& parts, std::int64_t step)
    : parts_(parts),
      on_(parts.view.rank_of(parts.life.worker) == 0 && !parts.life.run.run_dir.empty()) {
  if (on_) {
    take_over(step);
    return;
  }
  parts_.life.log.reset();
  if (parts_.life.checkpoints) parts_.life.checkpoints->hand_over();
}

// Where steps are handed out they are not done in order: none of those logged is taken back, and
// the workers still have what the last chief did not log.
std::int64_t ChiefDuty::logs_after(std::int64_t step) const {
  const WorkerRun& run = parts_.life.run;
  const std::int64_t logged = run.control.logged_step();
  return way_of(run.job.strategy).traits.hands_out_work && logged >= 0 ? logged : step;
}

void ChiefDuty::take_over(std::int64_t step) {
  WorkerLife& life = parts_.life;
  ControlBlock& control = life.run.control;
  const std::int64_t after = logs_after(step);
  if (control.logged_step() > after) life.log.reset();
  if (!life.log) {
    const bool goes_on = parts_.view.epoch > 1 || step > 0;
    life.log.emplace(life.run.run_dir, life.run.job.log,
                     goes_on ? std::optional(after) : std::nullopt);
  }
  control.set_logged_step(after);
  if (!life.checkpoints) life.checkpoints.emplace(life.run.run_dir, life.run.job);
  life.checkpoints->take_over();
}

bool ChiefDuty::save_model_file(std::int64_t steps) {
  const WorkerRun& run = parts_.life.run;
  return on_ &&
         save_model(run.run_dir, parts_.model, {run.job, run.data, steps, parts_.view.world()});
}

void ChiefDuty::save_last_model(std::int64_t steps) {
  if (!on_) return;
  parts_.life.slot.state.store(WorkerState::saving);
  const Working working(parts_.life.slot.activity, BusyWith::saving);
  save_model_file(steps);
}

}  // namespace cohort
