#pragma once

#include <cohort/run.h>

#include <filesystem>
#include <functional>
#include <string>

namespace cohort {

/// Reads the steps of a run's metrics.jsonl while it is being written. A chief that takes over may
/// cut lines off, in a new file of that name, and write them again: of steps that were told nothing
/// is told again.
class MetricsTail {
 public:
  /// Steps up to this one are not told.
  void begin_after(std::int64_t step) { told_ = step; }

  /// Tells every step that has come since the last call. Half a line is left for the next.
  void read(const std::filesystem::path& run_dir,
            const std::function<void(const StepReport& step)>& tell);

 private:
  void take_line(const std::string& line, const std::function<void(const StepReport& step)>& tell);

  bool goes_on(int file) const;

  std::uint64_t file_ = 0;    // Its inode, which another file may get when it is gone.
  std::uint64_t offset_ = 0;  // Whole lines before it were read,
  std::string last_line_;     // the last of which was this.
  std::int64_t told_ = 0;     // The last step.
};

}  // namespace cohort
