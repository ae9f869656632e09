#pragma once

#include <cstdint>

#include "cluster/view.h"
#include "train/loop/pace.h"
#include "train/loop/stepper.h"
#include "train/worker_life.h"

namespace cohort {

/// When the validation set is looked at: once after every epoch, whatever becomes of the groups of
/// workers meanwhile, and at the end, as the job says. What was seen goes to the worker's result
/// and to the chief's log.
class EpochValidation {
 public:
  /// What it is made of; all of it outlives it.
  struct Parts {
    WorkerLife& life;
    Stepper& stepper;
    Strategy& strategy;
    Pace& pace;
  };

  explicit EpochValidation(const Parts& parts) : parts_(parts) {}

  /// At the start of a group, after `steps` steps: all agree on what is validated already.
  void begin(const View& view, std::int64_t steps);

  /// Whether this worker will validate when so many steps are done.
  bool is_due(std::int64_t steps) const;

  /// Validates the epoch that is finished after `steps` steps, where there is one. Called before a
  /// step, not after one, so that it is not left out where the group that did the step broke.
  void before_step(std::int64_t steps);

  /// After the last step, all together, unless the job wants none.
  void at_end(std::int64_t steps);

 private:
  std::int64_t epochs_at(std::int64_t steps) const;
  bool is_wanted(std::int64_t steps) const;
  void run(std::int64_t steps, ValidationPart part);
  void tell(std::int64_t steps, const ValidationResult& result);

  Parts parts_;
};

}  // namespace cohort
