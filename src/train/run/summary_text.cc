#include "train/run/summary_text.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"

namespace cohort::training {
namespace {

using SummaryJson = nlohmann::ordered_json;

template <class T>
SummaryJson value_or_null(const std::optional<T>& value) {
  return value ? SummaryJson(*value) : SummaryJson(nullptr);
}

SummaryJson staleness_json(const std::optional<StalenessSummary>& staleness) {
  if (!staleness) return nullptr;
  SummaryJson histogram = SummaryJson::object();
  for (const auto& [value, pushes] : staleness->histogram) {
    histogram[std::to_string(value)] = pushes;
  }
  return {{"mean", staleness->mean},       {"max", staleness->max},
          {"histogram", histogram},        {"applied", staleness->applied},
          {"dropped", staleness->dropped}, {"duplicates", staleness->duplicates},
          {"missing", staleness->missing}};
}

SummaryJson shards_json(const std::vector<ShardSummary>& shards) {
  if (shards.empty()) return nullptr;
  SummaryJson all = SummaryJson::array();
  for (const ShardSummary& shard : shards) {
    all.push_back({{"server", shard.server},
                   {"version", shard.version},
                   {"applied", shard.applied},
                   {"dropped", shard.dropped},
                   {"duplicates", shard.duplicates},
                   {"missing", shard.missing},
                   {"fingerprint", fmt::format("{:016x}", shard.fingerprint)}});
  }
  return all;
}

template <class T>
void read(const SummaryJson& object, const char* key, T& value) {
  object.at(key).get_to(value);
}

template <class T>
void read(const SummaryJson& object, const char* key, std::optional<T>& value) {
  const SummaryJson& found = object.at(key);
  if (!found.is_null()) value = found.get<T>();
}

StalenessSummary staleness_of(const SummaryJson& object) {
  StalenessSummary staleness;
  read(object, "mean", staleness.mean);
  read(object, "max", staleness.max);
  for (const auto& [value, pushes] : object.at("histogram").items()) {
    std::int64_t age = 0;
    std::from_chars(value.data(), value.data() + value.size(), age);
    staleness.histogram[age] = pushes.get<std::int64_t>();
  }
  read(object, "applied", staleness.applied);
  read(object, "dropped", staleness.dropped);
  read(object, "duplicates", staleness.duplicates);
  read(object, "missing", staleness.missing);
  return staleness;
}

ShardSummary shard_of(const SummaryJson& object) {
  ShardSummary shard;
  read(object, "server", shard.server);
  read(object, "version", shard.version);
  read(object, "applied", shard.applied);
  read(object, "dropped", shard.dropped);
  read(object, "duplicates", shard.duplicates);
  read(object, "missing", shard.missing);
  const auto text = object.at("fingerprint").get<std::string>();
  std::from_chars(text.data(), text.data() + text.size(), shard.fingerprint, 16);
  return shard;
}

TaskSummary task_of(const SummaryJson& object) {
  TaskSummary task;
  read(object, "role", task.role);
  read(object, "rank", task.rank);
  read(object, "host", task.host);
  read(object, "pid", task.pid);
  read(object, "peak_rss_bytes", task.peak_rss_bytes);
  read(object, "steps", task.steps);
  read(object, "step_seconds", task.step_seconds);
  read(object, "wait_seconds", task.wait_seconds);
  return task;
}

Summary summary_of(const SummaryJson& object) {
  Summary summary;
  read(object, "status", summary.status);
  read(object, "strategy", summary.strategy);
  read(object, "engine", summary.engine);
  read(object, "workers", summary.workers);
  read(object, "servers", summary.servers);
  read(object, "steps", summary.steps);
  read(object, "epochs", summary.epochs);
  read(object, "samples", summary.samples);
  read(object, "seconds", summary.seconds);
  read(object, "samples_per_second", summary.samples_per_second);
  read(object, "loss", summary.loss);
  read(object, "accuracy", summary.accuracy);
  read(object, "bytes_sent", summary.bytes_sent);
  read(object, "bytes_received", summary.bytes_received);
  read(object, "restarts", summary.restarts);
  read(object, "failures", summary.failures);
  if (!object.at("staleness").is_null()) summary.staleness = staleness_of(object.at("staleness"));
  if (!object.at("shards").is_null()) {
    for (const SummaryJson& shard : object.at("shards")) summary.shards.push_back(shard_of(shard));
  }
  read(object, "phase_seconds", summary.phase_seconds);
  for (const SummaryJson& task : object.at("tasks")) summary.tasks.push_back(task_of(task));
  return summary;
}

/// What each worker's time went to, a line each.
std::string describe_workers(const std::vector<TaskSummary>& tasks) {
  std::string lines;
  for (const TaskSummary& task : tasks) {
    if (!task.step_seconds) continue;
    lines += fmt::format("{}worker {}: {} steps, {:.1f} ms each, waited {:.1f} s",
                         lines.empty() ? "" : "\n", task.rank, task.steps.value_or(0),
                         1e3 * *task.step_seconds, task.wait_seconds.value_or(0));
  }
  return lines;
}

}  // namespace

std::string to_json(const Summary& summary) {
  SummaryJson tasks = SummaryJson::array();
  for (const TaskSummary& task : summary.tasks) {
    tasks.push_back({{"role", task.role},
                     {"rank", task.rank},
                     {"host", task.host},
                     {"pid", task.pid},
                     {"peak_rss_bytes", task.peak_rss_bytes},
                     {"steps", value_or_null(task.steps)},
                     {"step_seconds", value_or_null(task.step_seconds)},
                     {"wait_seconds", value_or_null(task.wait_seconds)}});
  }
  return SummaryJson{{"status", summary.status},
                     {"strategy", summary.strategy},
                     {"engine", summary.engine},
                     {"workers", summary.workers},
                     {"servers", summary.servers},
                     {"steps", summary.steps},
                     {"epochs", summary.epochs},
                     {"samples", summary.samples},
                     {"seconds", summary.seconds},
                     {"samples_per_second", value_or_null(summary.samples_per_second)},
                     {"loss", value_or_null(summary.loss)},
                     {"accuracy", value_or_null(summary.accuracy)},
                     {"bytes_sent", summary.bytes_sent},
                     {"bytes_received", summary.bytes_received},
                     {"restarts", summary.restarts},
                     {"failures", summary.failures},
                     {"staleness", staleness_json(summary.staleness)},
                     {"shards", shards_json(summary.shards)},
                     {"phase_seconds", summary.phase_seconds},
                     {"tasks", tasks}}
             .dump(2, ' ', /*ensure_ascii=*/false, SummaryJson::error_handler_t::replace) +
         "\n";
}

Summary summary_from_json(const std::string& text, const std::string& source) {
  try {
    return summary_of(parse_json<SummaryJson>(text));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::corrupt, "{} is not the summary of a run: {}", source, excerpt(error.what()));
  }
}

std::string closing_line(const Summary& summary) {
  std::string text = fmt::format("{}: {} steps, {:.2f} epochs in {:.1f} s", summary.status,
                                 summary.steps, summary.epochs, summary.seconds);
  if (summary.samples_per_second)
    text += fmt::format(", {:.0f} samples/s", *summary.samples_per_second);
  if (summary.loss) text += fmt::format(", validation loss {:.4f}", *summary.loss);
  if (summary.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *summary.accuracy);
  if (summary.workers > 1) text.append("\n").append(describe_workers(summary.tasks));
  return text + fmt::format("\nrun folder: {}", summary.run_dir);
}

}  // namespace cohort::training
