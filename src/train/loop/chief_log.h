#pragma once

#include <cohort/job.h>
#include <cohort/run.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "events/event_writer.h"
#include "tensor/flat_space.h"

// metrics.jsonl of a run folder, written and read: a line of JSON for every logged step (it has
// "lr") and every validation, in the order of the steps. The chief alone writes it. A chief that
// takes over, or a run that goes on from a checkpoint, first takes back what is said of steps that
// are made again: the rest goes to a new file of the same name, so that a reader finds either.

namespace cohort::training {

/// A logged step, as the chief sees it.
struct StepRecord {
  std::int64_t step = 0;  ///< Steps done.
  double epoch = 0;       ///< Epochs done, with fraction.
  double loss = 0;
  double lr = 0;
  double samples_per_second = 0;
  double gradient_norm = 0;
  double communication_share = 0;  ///< Of the time since the last record, communication and wait.
  double seconds = 0;              ///< Of training so far, validation left out.
  std::uint64_t bytes_sent = 0;    ///< By the chief so far.
  std::optional<double> staleness = {};           ///< Where the strategy has any.
  std::optional<double> consensus_distance = {};  ///< Likewise.
};

/// A look at the validation set.
struct ValidationRecord {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double accuracy = 0;
  bool has_accuracy = false;
};

/// What the chief writes into the run folder while training: metrics.jsonl and the TensorBoard
/// events. Every line is handed to the system before the call returns. Every write that fails
/// throws Error naming the file. For the chief's own thread.
class ChiefLog {
 public:
  /// With `continue_from` it goes on in a folder that has logs already, after that many steps: what
  /// they say of later steps is taken back, so that no step is there twice.
  ChiefLog(const std::filesystem::path& run_dir, const LogOptions& options,
           std::optional<std::int64_t> continue_from = {});

  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  /// Of all parameters, only for TensorBoard.
  void histograms(const tensor::FlatSpace& space, std::int64_t step);
  /// Nothing is written after it.
  void close();

 private:
  void write_line(const std::string& line);

  std::filesystem::path metrics_path_;
  UniqueFd metrics_;
  std::unique_ptr<events::EventWriter> events_;  // Null where the job wants none.
};

/// Keeps what metrics.jsonl says of the first `steps` steps, in a new file. Who died may have
/// written half a line; that goes, too. Does nothing where there is no such file.
void cut_metrics(const std::filesystem::path& path, std::int64_t steps);

/// Reads the steps of a run's metrics.jsonl while it is being written, for a program that has
/// started the run. Where a chief has cut lines off and writes them again, nothing is told twice:
/// steps only grow.
class MetricsTail {
 public:
  /// Steps up to this one are not told.
  void begin_after(std::int64_t step) { told_ = step; }

  /// Tells every step that has come since the last call. Half a line is left for the next. Does
  /// nothing where there is no file yet.
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

}  // namespace cohort::training
