#pragma once

#include <cohort/train.h>

#include <string>

#include "base/deadline.h"
#include "launch/control/control_block.h"

namespace cohort::launch {

/// What a user sees of a run, on standard output: on a terminal one line that is written over ten
/// times a second, otherwise a plain line every two seconds, or JSON lines (RunOptions::json_log),
/// or nothing (RunOptions::quiet). It reads the chief's card of the control block, so it costs the
/// workers nothing. For the launcher's thread.
class Progress {
 public:
  /// `workers`: that the run was started with. `control` outlives it.
  Progress(const RunOptions& options, const ControlBlock& control, int workers);

  /// A sentence for the user.
  void say(const std::string& text);
  /// Called often; shows what has changed.
  void tick(std::size_t live_workers);
  /// Ends the line that is written over.
  void finish();

 private:
  enum class Style { quiet, plain, terminal, json };

  void show(const std::string& line);
  std::string line(std::size_t live_workers) const;
  std::string json(std::size_t live_workers) const;

  Style style_;
  const ControlBlock& control_;
  int workers_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = Clock::now();
  std::int64_t shown_step_ = -1;
  bool open_line_ = false;  // The cursor stands at the end of a line that is written over.
};

}  // namespace cohort::launch
