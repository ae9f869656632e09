#include "train/run/worker_report.h"

#include <algorithm>

#include "base/json.h"

namespace cohort::training {
namespace {

constexpr std::int64_t kMostCounted = std::int64_t{1} << 52;  // A thousand of them can be summed.

std::int64_t count_in(const JsonFields& fields, const char* key) {
  return fields.integer(key, 0, kMostCounted);
}

}  // namespace

std::string to_text(const launch::WorkerResult& result) {
  return nlohmann::json{{"steps", result.steps},
                        {"samples", result.samples},
                        {"samples_per_second", result.samples_per_second},
                        {"own_steps", result.own_steps},
                        {"step_seconds", result.step_seconds},
                        {"bytes_sent", result.bytes_sent},
                        {"bytes_received", result.bytes_received},
                        {"left_out", result.left_out},
                        {"phase_seconds", result.phase_seconds},
                        {"pid", result.task.pid},
                        {"peak_rss_bytes", result.task.peak_rss_bytes},
                        {"host", result.task.host.data()}}
      .dump();
}

launch::WorkerResult worker_result_from(const std::string& text) {
  const nlohmann::json json = parse_json(text);
  const JsonFields fields(json, "its report");
  launch::WorkerResult result;
  result.steps = count_in(fields, "steps");
  result.samples = count_in(fields, "samples");
  result.samples_per_second = fields.number("samples_per_second");
  result.own_steps = count_in(fields, "own_steps");
  result.step_seconds = fields.number("step_seconds");
  result.bytes_sent = static_cast<std::uint64_t>(count_in(fields, "bytes_sent"));
  result.bytes_received = static_cast<std::uint64_t>(count_in(fields, "bytes_received"));
  result.left_out = static_cast<std::uint64_t>(count_in(fields, "left_out"));
  const std::vector<double> phases = fields.numbers("phase_seconds");
  if (phases.size() != result.phase_seconds.size()) fields.wrong("phase_seconds", "has other ones");
  std::ranges::copy(phases, result.phase_seconds.begin());
  result.task.pid = count_in(fields, "pid");
  result.task.peak_rss_bytes = count_in(fields, "peak_rss_bytes");
  launch::put_text(result.task.host, fields.text("host"));
  return result;
}

}  // namespace cohort::training
