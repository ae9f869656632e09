#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "events/event_writer.h"
#include "tensor/flat_space.h"

namespace cohort {

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

struct ValidationRecord {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double accuracy = 0;
  bool has_accuracy = false;
};

/// What the chief writes into the run folder while training: metrics.jsonl and the TensorBoard
/// events. Every write that fails throws Error naming the file.
class ChiefLog {
 public:
  /// With `continue_from` it goes on in a folder that has logs already, after that many steps: what
  /// they say of later steps is taken back, so that no step is there twice.
  ChiefLog(const std::filesystem::path& run_dir, const LogOptions& options,
           std::optional<std::int64_t> continue_from = {});

  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  void histograms(const FlatSpace& space, std::int64_t step);
  void close();

 private:
  void write_line(const std::string& line);

  std::filesystem::path metrics_path_;
  UniqueFd metrics_;
  std::unique_ptr<EventWriter> events_;
};

/// Keeps what metrics.jsonl says of the first `steps` steps, in a new file. Who died may have
/// written half a line.
void cut_metrics(const std::filesystem::path& path, std::int64_t steps);

}  // namespace cohort
