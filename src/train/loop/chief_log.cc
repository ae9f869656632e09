#include "train/loop/chief_log.h"

#include <sstream>

#include "base/files.h"
#include "base/json_text.h"
#include "cluster/host_id.h"

namespace cohort {

namespace {

/// Whether a line of metrics.jsonl is whole and about one of the first `steps` steps.
bool is_within(const std::string& line, std::int64_t steps) {
  const auto record = parse_json(line);
  if (!record.is_object()) return false;
  const auto step = record.find("step");
  return step != record.end() && step->is_number_integer() && *step <= steps;
}

}  // namespace

void cut_metrics(const std::filesystem::path& path, std::int64_t steps) {
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  std::istringstream lines(read_file(path, Links::refuse));
  for (std::string line; std::getline(lines, line);) {
    if (is_within(line, steps)) kept += line + "\n";
  }
  write_file_atomically(path, kept);
}

ChiefLog::ChiefLog(const std::filesystem::path& run_dir, const LogOptions& options,
                   std::optional<std::int64_t> continue_from)
    : metrics_path_(run_dir / "metrics.jsonl") {
  if (continue_from) cut_metrics(metrics_path_, *continue_from);
  metrics_ = open_to_write(metrics_path_, continue_from ? Existing::append : Existing::empty);
  if (!options.tensorboard) return;
  events_ = std::make_unique<EventWriter>(run_dir, host_name());
  if (!continue_from) return;
  events_->session_start(*continue_from + 1);
  events_->flush();
}

void ChiefLog::write_line(const std::string& line) {
  write_all(metrics_.get(), line + "\n", metrics_path_);
}

void ChiefLog::step(const StepRecord& record) {
  nlohmann::ordered_json line = {{"step", record.step},
                                 {"epoch", record.epoch},
                                 {"loss", record.loss},
                                 {"lr", record.lr},
                                 {"samples_per_second", record.samples_per_second},
                                 {"gradient_norm", record.gradient_norm},
                                 {"communication_share", record.communication_share},
                                 {"seconds", record.seconds},
                                 {"bytes_sent", record.bytes_sent}};
  if (record.staleness) line["staleness"] = *record.staleness;
  if (record.consensus_distance) line["consensus_distance"] = *record.consensus_distance;
  write_line(line.dump());
  if (!events_) return;
  events_->scalar("train/loss", record.loss, record.step);
  events_->scalar("train/learning_rate", record.lr, record.step);
  events_->scalar("train/samples_per_second", record.samples_per_second, record.step);
  events_->scalar("train/gradient_norm", record.gradient_norm, record.step);
  events_->scalar("train/communication_share", record.communication_share, record.step);
  if (record.staleness) events_->scalar("train/staleness", *record.staleness, record.step);
  if (record.consensus_distance) {
    events_->scalar("train/consensus_distance", *record.consensus_distance, record.step);
  }
  events_->flush();
}

void ChiefLog::validation(const ValidationRecord& record) {
  nlohmann::ordered_json line = {
      {"step", record.step}, {"epoch", record.epoch}, {"validation_loss", record.loss}};
  if (record.has_accuracy) line["validation_accuracy"] = record.accuracy;
  write_line(line.dump());
  if (!events_) return;
  events_->scalar("validation/loss", record.loss, record.step);
  if (record.has_accuracy) events_->scalar("validation/accuracy", record.accuracy, record.step);
  events_->flush();
}

void ChiefLog::histograms(const FlatSpace& space, std::int64_t step) {
  if (!events_) return;
  for (const FlatEntry& entry : space.layout().parameters.entries) {
    events_->histogram("parameters/" + entry.name,
                       space.memory().parameters.subspan(entry.offset, entry.count), step);
  }
  events_->flush();
}

void ChiefLog::close() {
  metrics_ = UniqueFd();
  if (events_) events_->close();
}

}  // namespace cohort
