#pragma once

#include <optional>
#include <string>

#include "cluster/view.h"
#include "launch/control/control_block.h"

namespace cohort {

/// Tells who is waited for when workers stand still.
class StallReport {
 public:
  /// A sentence, where workers of this group have waited for at least ten seconds and nothing was
  /// said of it in the last ten: "waiting 10 s for ranks 3, 7 in step 120, sum of the gradients",
  /// and what those are busy with.
  std::optional<std::string> look(const ControlBlock& control, const View& view,
                                  Clock::time_point now);

 private:
  std::int64_t told_since_ = 0;     // The beginning of the wait that was told of,
  Clock::time_point tell_again_{};  // and when to tell of it once more.
};

}  // namespace cohort
