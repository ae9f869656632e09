#include "train/run/server_report.h"

#include <algorithm>

namespace cohort {

StalenessSummary summarize_staleness(std::span<const ServerReport> servers) {
  StalenessSummary summary;
  double sum = 0;
  std::int64_t pushes = 0;
  for (const ServerReport& server : servers) {
    const PushCounts& counts = server.counts;
    summary.applied += static_cast<std::int64_t>(counts.applied);
    summary.dropped += static_cast<std::int64_t>(counts.dropped);
    summary.duplicates += static_cast<std::int64_t>(counts.duplicates);
    summary.missing += static_cast<std::int64_t>(counts.missing);
    summary.max = std::max(summary.max, static_cast<std::int64_t>(counts.staleness_max));
    sum += counts.staleness_sum;
    for (const auto& [staleness, count] : counts.histogram()) {
      summary.histogram[static_cast<std::int64_t>(staleness)] += static_cast<std::int64_t>(count);
      pushes += static_cast<std::int64_t>(count);
    }
  }
  if (pushes > 0) summary.mean = sum / static_cast<double>(pushes);
  return summary;
}

std::vector<ShardSummary> summarize_shards(std::span<const ServerReport> servers) {
  std::vector<ShardSummary> all;
  for (const auto& [version, counts] : servers) {
    all.push_back({.server = static_cast<int>(all.size()),
                   .version = static_cast<std::int64_t>(version),
                   .applied = static_cast<std::int64_t>(counts.applied),
                   .dropped = static_cast<std::int64_t>(counts.dropped),
                   .duplicates = static_cast<std::int64_t>(counts.duplicates),
                   .missing = static_cast<std::int64_t>(counts.missing),
                   .fingerprint = counts.fingerprint});
  }
  return all;
}

}  // namespace cohort
