#include "train/state/session_checkpoints.h"

#include <array>
#include <random>

#include "base/activity.h"
#include "base/fail.h"
#include "base/log.h"
#include "kinds/strategy_table.h"

namespace cohort::training {
namespace {

/// Not 0.
std::int64_t random_token() {
  return (std::random_device()() & 0xffffffffU) | 1U;
}

}  // namespace

SessionCheckpoints::SessionCheckpoints(WorkerLife& life, const cluster::View& view,
                                       strategy::Strategy& strategy, Model& model)
    : life_(life),
      view_(view),
      strategy_(strategy),
      model_(model),
      rank_(view.rank_of(life.worker).value_or(0)),
      way_(agree()) {}

// All workers of the group sum the chief's token and how many cannot reach the run folder, so that
// all come to the same way.
SessionCheckpoints::Way SessionCheckpoints::agree() {
  if (!strategy_.all_save() || view_.world() == 1) return Way::alone;
  enum { kToken, kElsewhere };
  std::array<std::int64_t, 2> numbers = {is_chief() ? random_token() : 0,
                                         life_.run.run_dir.empty() ? 1 : 0};
  strategy_.sum_over_workers(numbers);
  token_ = static_cast<std::uint32_t>(numbers[kToken]);
  if (numbers[kElsewhere] > 0) {
    if (writes()) {
      log_info(
          "{} of {} workers cannot reach the run folder: of what only one worker has, checkpoints "
          "have the chief's",
          numbers[kElsewhere], view_.world());
    }
    return Way::alone;
  }
  const bool handed_out = kinds::way_of(life_.run.job.strategy).traits.hands_out_work;
  return handed_out ? Way::asked : Way::agreed;
}

bool SessionCheckpoints::wants(std::int64_t step) {
  return way_ == Way::agreed && is_due(step);
}

bool SessionCheckpoints::is_due(std::int64_t step) {
  return writes() && life_.checkpoints->due(step);
}

void SessionCheckpoints::after_step(std::int64_t step, const strategy::StepOutcome& outcome) {
  if (way_ == Way::asked && !is_chief()) return answer();
  const bool saves = way_ == Way::agreed ? outcome.save : is_due(step);
  if (saves) save_in_background();
}

void SessionCheckpoints::save_in_background() {
  const PhaseSpan span(life_.phases, Phase::checkpoint);
  // Where nobody waits, those who are left go on without the one that was lost.
  const bool alone = way_ == Way::asked && is_incomplete();
  if (alone && writes()) log_info("a task was lost: this checkpoint has only the chief's part");
  if (!alone) ++number_;
  if (!is_chief()) {
    save_part();
    return;
  }
  if (!writes()) return;
  life_.checkpoints->save(place(), model_, chiefs_fill(), alone ? nobody() : others());
  if (way_ == Way::asked && !alone) life_.run.control.ask_for_parts(token_, number_);
}

void SessionCheckpoints::answer() {
  const std::uint32_t asked = life_.run.control.asked_parts(token_);
  if (asked <= number_) return;
  number_ = asked;
  const PhaseSpan span(life_.phases, Phase::checkpoint);
  save_part();
}

void SessionCheckpoints::save_part() {
  life_.parts.save(joint(number_), rank_, model_, own_fill());
}

void SessionCheckpoints::after_meet() {
  if (way_ == Way::asked && !is_chief()) answer();
}

// What was asked for before is answered by now, so that all count the same.
void SessionCheckpoints::save_now() {
  ++number_;
  if (!writes()) return save_part_now();
  life_.checkpoints->save_now(place(), model_, chiefs_fill(), others());
}

void SessionCheckpoints::finish() {
  if (!asks_for_checkpoints(life_.run.job.checkpoint)) return;
  ++number_;
  if (!writes()) return save_part_now();
  life_.checkpoints->finish(place(), model_, chiefs_fill(), others());
}

void SessionCheckpoints::save_part_now() {
  if (is_chief() || !is_joint()) return;
  life_.parts.save_now(joint(number_), rank_, model_, own_fill());
}

ChiefCheckpoints::Fill SessionCheckpoints::chiefs_fill() {
  return [this](tensor::TrainingState& state) { strategy_.save_state(state); };
}

WorkerParts::Fill SessionCheckpoints::own_fill() {
  return [this](tensor::TrainingState& state) { strategy_.save_own_state(state); };
}

CheckpointPlace SessionCheckpoints::place() const {
  return {.samples = life_.run.data.train->size(), .workers = view_.world()};
}

checkpoint::JointCheckpoint SessionCheckpoints::joint(std::uint32_t number) const {
  return {.folder = life_.run.run_dir / "checkpoints",
          .attempt = {.generation = view_.generation, .token = token_, .number = number}};
}

/// Somebody of the group is not there any more.
bool SessionCheckpoints::is_incomplete() const {
  const launch::ControlBlock& control = life_.run.control;
  return control.has_lost(view_.generation) || control.is_broken(view_.generation);
}

checkpoint::OtherParts SessionCheckpoints::nobody() const {
  return {.attempt = {.generation = view_.generation}};
}

checkpoint::OtherParts SessionCheckpoints::others() const {
  checkpoint::OtherParts others = nobody();
  if (!is_joint()) return others;
  others.attempt = joint(number_).attempt;
  for (int rank = 1; rank < view_.world(); ++rank) others.tasks.push_back(rank);
  others.give_up = [&control = life_.run.control, generation = view_.generation] {
    return control.has_lost(generation) || control.is_broken(generation);
  };
  others.patience = kLongestWork;
  return others;
}

}  // namespace cohort::training
