#include "train/loop/chief_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <limits>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "cluster/host_id.h"

namespace cohort::training {

namespace {

/// Whether a line of metrics.jsonl is whole and about one of the first `steps` steps.
bool is_within(const std::string& line, std::int64_t steps) {
  const auto record = parse_json(line);
  if (!record.is_object()) return false;
  const auto step = record.find("step");
  return step != record.end() && step->is_number_integer() && *step <= steps;
}

}  // namespace

// A run that goes on from step n has, in the file, lines of steps after n that it will make again:
// they go, and so does a last line that a killed chief has written half of.
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
  events_ = std::make_unique<events::EventWriter>(run_dir, cluster::host_name());
  if (!continue_from) return;
  events_->session_start(*continue_from + 1);
  events_->flush();
}

void ChiefLog::write_line(const std::string& line) {
  write_all(metrics_.get(), line + "\n", metrics_path_);
}

// Every line is written at once, by one call: who reads the file meanwhile (MetricsTail, a person
// with `tail -f`) sees whole lines, and a chief that is killed loses none that it has logged.
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

void ChiefLog::histograms(const tensor::FlatSpace& space, std::int64_t step) {
  if (!events_) return;
  for (const tensor::FlatEntry& entry : space.layout().parameters.entries) {
    events_->histogram("parameters/" + entry.name,
                       space.memory().parameters.subspan(entry.offset, entry.count), step);
  }
  events_->flush();
}

void ChiefLog::close() {
  metrics_ = UniqueFd();
  if (events_) events_->close();
}

// Reads what was added since the last call, in the caller's process, which did not write it. The
// file may be another one by now (another chief began it anew, a run was resumed and cut it): then
// the place that was reached means nothing, and it is read from its beginning; `told_` sees to it
// that no step is told twice.
void MetricsTail::read(const std::filesystem::path& run_dir,
                       const std::function<void(const StepReport& step)>& tell) {
  const UniqueFd file(::open((run_dir / "metrics.jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return;  // Not there yet.
  if (file_ != status.st_ino || !goes_on(file.get())) offset_ = 0;
  file_ = status.st_ino;
  std::string text;
  std::array<char, 65536> part;
  for (ssize_t count = 0; (count = ::pread(file.get(), part.data(), part.size(),
                                           static_cast<off_t>(offset_ + text.size()))) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    last_line_ = text.substr(begin, end - begin + 1);
    take_line(last_line_, tell);
  }
  offset_ += begin;
}

/// Whether what was read last still stands before the offset.
bool MetricsTail::goes_on(int file) const {
  if (offset_ == 0) return true;
  std::string line(last_line_.size(), '\0');
  const ssize_t count =
      ::pread(file, line.data(), line.size(), static_cast<off_t>(offset_ - line.size()));
  return count == static_cast<ssize_t>(line.size()) && line == last_line_;
}

void MetricsTail::take_line(const std::string& line,
                            const std::function<void(const StepReport& step)>& tell) {
  const auto record = parse_json(line);
  if (!record.is_object() || !record.contains("lr")) return;  // Of a validation.
  const auto step = record.find("step");
  if (step == record.end() || !step->is_number_integer()) return;
  if (step->get<std::int64_t>() <= told_) return;
  told_ = step->get<std::int64_t>();
  // What is not finite stands there as null.
  const auto number = [&](const char* key) {
    const auto found = record.find(key);
    const bool is_number = found != record.end() && found->is_number();
    return is_number ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  tell({.step = told_,
        .epoch = number("epoch"),
        .loss = number("loss"),
        .lr = number("lr"),
        .samples_per_second = number("samples_per_second")});
}

}  // namespace cohort::training
