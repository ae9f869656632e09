#include "chaos/watch/run_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/fail.h"
#include "base/files.h"
#include "base/json.h"
#include "base/unique_fd.h"

namespace cohort::chaos {
namespace {

namespace fs = std::filesystem;

constexpr off_t kTailBytes = 4096;

/// The end of a file, from byte `from` of it on; empty where it does not exist.
std::string bytes_from(const fs::path& path, off_t from) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  char buffer[kTailBytes];
  while (file) {
    const ssize_t count = ::pread(file.get(), buffer, sizeof buffer, from);
    if (count <= 0) break;
    bytes.append(buffer, static_cast<std::size_t>(count));
    from += count;
  }
  return bytes;
}

/// The last `length` bytes, or all where it is shorter; its first line may be cut.
std::string tail(const fs::path& path, off_t length) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return "";
  return bytes_from(path, std::max<off_t>(0, status.st_size - length));
}

/// The step of a line that tells of training; nothing for validations and for what is not whole.
std::optional<std::int64_t> trained_step(const std::string& line) {
  const nlohmann::json record = parse_json(line);
  if (!record.is_object() || !record.contains("loss") || !record.contains("step")) return {};
  return record["step"].get<std::int64_t>();
}

/// Those that end; what is behind the last newline is still being written.
std::vector<std::string> whole_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

}  // namespace

// Called again and again while the run writes these files. tasks.json is replaced as a whole, so it
// is read whole; of metrics.jsonl only the end matters; history.jsonl is read on from where the
// last look ended, and only up to its last newline: the rest of a line that is being written comes
// with the next look.
void RunWatch::refresh() {
  read_tasks();
  read_step();
  read_history();
}

void RunWatch::read_tasks() {
  const nlohmann::json all = parse_json(bytes_from(run_dir_ / "tasks.json", 0));
  if (!all.is_object() || !all.contains("tasks")) return;
  tasks_.clear();
  for (const nlohmann::json& entry : all["tasks"]) {
    SeenTask task{.role = entry.at("role"), .number = entry.at("number"), .pid = entry.at("pid")};
    if (entry.contains("rank") && entry["rank"].is_number()) task.rank = entry["rank"].get<int>();
    tasks_.push_back(std::move(task));
  }
}

void RunWatch::read_step() {
  const auto lines = whole_lines(tail(run_dir_ / "metrics.jsonl", kTailBytes));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto step = trained_step(*line);
    if (!step) continue;
    step_ = *step;
    return;
  }
}

void RunWatch::read_history() {
  const std::string text = bytes_from(run_dir_ / "history.jsonl", static_cast<off_t>(read_bytes_));
  for (const std::string& line : whole_lines(text)) {
    take_line(line);
    read_bytes_ += line.size() + 1;
  }
}

void RunWatch::take_line(const std::string& text) {
  const nlohmann::json record = parse_json(text);
  const std::size_t line = lines_++;
  if (!record.is_object()) return;
  const std::string event = record.value("event", "");
  if (event == "lost") {
    losses_.push_back({.role = record.value("role", ""),
                       .number = record.value("number", -1),
                       .pid = record.value("pid", pid_t(0)),
                       .cause = record.value("cause", ""),
                       .line = line});
  } else if (event == "ended") {
    ends_.push_back({.role = record.value("role", ""),
                     .number = record.value("number", -1),
                     .pid = record.value("pid", pid_t(0))});
  } else if (event == "group") {
    groups_.push_back({.group = record.value("group", std::int64_t(0)),
                       .step = record.value("step", std::int64_t(-1)),
                       .line = line});
  }
}

std::optional<SeenGroup> RunWatch::group_after(std::size_t line) const {
  const auto group =
      std::ranges::find_if(groups_, [&](const SeenGroup& one) { return one.line > line; });
  return group == groups_.end() ? std::nullopt : std::optional(*group);
}

std::int64_t RunWatch::checkpoint_step() const {
  std::int64_t newest = -1;
  std::error_code failed;
  fs::directory_iterator each(run_dir_ / "checkpoints", failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    const std::string name = each->path().filename().string();
    constexpr std::string_view kPrefix = "step-";
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t step = -1;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
    newest = std::max(newest, step);
  }
  return newest;
}

nlohmann::json RunWatch::summary() const {
  const nlohmann::json all = parse_json(bytes_from(run_dir_ / "summary.json", 0));
  return all.is_object() ? all : nlohmann::json();
}

std::vector<std::int64_t> logged_steps(const fs::path& run_dir) {
  std::vector<std::int64_t> steps;
  std::ifstream lines(run_dir / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    if (const auto step = trained_step(line)) steps.push_back(*step);
  }
  return steps;
}

std::string log_tails(const fs::path& run_dir) {
  std::string all;
  std::error_code failed;
  fs::directory_iterator each(run_dir / "logs", failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    all += fmt::format("== {}\n{}\n", each->path().filename().string(),
                       tail(each->path(), kTailBytes / 4));
  }
  return all;
}

}  // namespace cohort::chaos
