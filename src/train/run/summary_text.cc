#include "train/run/summary_text.h"

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/json.h"

namespace cohort::training {
namespace {

using SummaryJson = nlohmann::ordered_json;

// The fields of summary.json, in the order in which they stand there: one list for both ways.

/// A T, to be read or to be filled.
template <class S, class T>
concept AnyOf = std::same_as<std::remove_const_t<S>, T>;

// `field(key, value)` is called for each; by whom it is called decides which way it goes. A field
// that is added to a summary gets a line here, and comes through both ways.
void for_each_field(AnyOf<StalenessSummary> auto& staleness, auto&& field) {
  field("mean", staleness.mean);
  field("max", staleness.max);
  field("histogram", staleness.histogram);
  field("applied", staleness.applied);
  field("dropped", staleness.dropped);
  field("not_finite", staleness.not_finite);
  field("duplicates", staleness.duplicates);
  field("missing", staleness.missing);
}

void for_each_field(AnyOf<ShardSummary> auto& shard, auto&& field) {
  field("server", shard.server);
  field("version", shard.version);
  field("applied", shard.applied);
  field("dropped", shard.dropped);
  field("duplicates", shard.duplicates);
  field("missing", shard.missing);
  field("fingerprint", shard.fingerprint);
}

void for_each_field(AnyOf<TaskSummary> auto& task, auto&& field) {
  field("role", task.role);
  field("rank", task.rank);
  field("host", task.host);
  field("pid", task.pid);
  field("peak_rss_bytes", task.peak_rss_bytes);
  field("steps", task.steps);
  field("step_seconds", task.step_seconds);
  field("wait_seconds", task.wait_seconds);
}

void for_each_field(AnyOf<Summary> auto& summary, auto&& field) {
  field("status", summary.status);
  field("strategy", summary.strategy);
  field("engine", summary.engine);
  field("workers", summary.workers);
  field("servers", summary.servers);
  field("steps", summary.steps);
  field("epochs", summary.epochs);
  field("samples", summary.samples);
  field("seconds", summary.seconds);
  field("samples_per_second", summary.samples_per_second);
  field("loss", summary.loss);
  field("accuracy", summary.accuracy);
  field("bytes_sent", summary.bytes_sent);
  field("bytes_received", summary.bytes_received);
  field("left_out", summary.left_out);
  field("restarts", summary.restarts);
  field("failures", summary.failures);
  field("staleness", summary.staleness);
  field("shards", summary.shards);
  field("phase_seconds", summary.phase_seconds);
  field("tasks", summary.tasks);
}

/// To JSON: a value that JSON knows stays as it is, anything else is an object of its fields.
struct ToJson {
  template <class T>
  static SummaryJson of(const T& value) {
    if constexpr (std::is_constructible_v<SummaryJson, const T&>) {
      return value;
    } else {
      SummaryJson object = SummaryJson::object();
      for_each_field(value, [&](const char* key, const auto& field) { object[key] = of(field); });
      return object;
    }
  }

  template <class T>
  static SummaryJson of(const std::optional<T>& value) {
    return value ? of(*value) : SummaryJson(nullptr);
  }

  static SummaryJson of(const std::vector<TaskSummary>& tasks) { return list(tasks); }
  static SummaryJson of(const std::vector<ShardSummary>& shards) {
    return shards.empty() ? SummaryJson(nullptr) : list(shards);
  }

  static SummaryJson of(const std::map<std::int64_t, std::int64_t>& histogram) {
    SummaryJson object = SummaryJson::object();
    for (const auto& [value, pushes] : histogram) object[std::to_string(value)] = pushes;
    return object;
  }

  /// A fingerprint: as a number it would lose bits in programs that know only doubles.
  static SummaryJson of(std::uint64_t fingerprint) { return fmt::format("{:016x}", fingerprint); }

 private:
  template <class T>
  static SummaryJson list(const std::vector<T>& values) {
    SummaryJson all = SummaryJson::array();
    for (const T& value : values) all.push_back(of(value));
    return all;
  }
};

/// The other way. What nlohmann throws for a field that is missing or of another type passes.
struct FromJson {
  template <class T>
  static void read(const SummaryJson& json, T& value) {
    if constexpr (std::is_constructible_v<SummaryJson, const T&>) {
      json.get_to(value);
    } else {
      for_each_field(value, [&](const char* key, auto& field) { read(json.at(key), field); });
    }
  }

  template <class T>
  static void read(const SummaryJson& json, std::optional<T>& value) {
    if (!json.is_null()) read(json, value.emplace());
  }

  static void read(const SummaryJson& json, std::vector<TaskSummary>& tasks) { list(json, tasks); }
  static void read(const SummaryJson& json, std::vector<ShardSummary>& shards) {
    if (!json.is_null()) list(json, shards);
  }

  static void read(const SummaryJson& json, std::map<std::int64_t, std::int64_t>& histogram) {
    for (const auto& [value, pushes] : json.items()) {
      std::int64_t age = 0;
      std::from_chars(value.data(), value.data() + value.size(), age);
      histogram[age] = pushes.get<std::int64_t>();
    }
  }

  static void read(const SummaryJson& json, std::uint64_t& fingerprint) {
    const auto text = json.get<std::string>();
    std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  }

 private:
  template <class T>
  static void list(const SummaryJson& json, std::vector<T>& values) {
    for (const SummaryJson& value : json) read(value, values.emplace_back());
  }
};

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
  return ToJson::of(summary).dump(2, ' ', /*ensure_ascii=*/false,
                                  SummaryJson::error_handler_t::replace) +
         "\n";
}

Summary summary_from_json(const std::string& text, const std::string& source) {
  try {
    Summary summary;
    FromJson::read(parse_json<SummaryJson>(text), summary);
    return summary;
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
