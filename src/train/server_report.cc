#include "train/server_report.h"

#include <algorithm>

namespace cohort {

ServerReport report_of(const ServerResult& result) {
  ServerReport report;
  report.version = result.version;
  report.applied = result.counts.applied;
  report.dropped = result.counts.dropped;
  report.duplicates = result.counts.duplicates;
  report.missing = result.counts.missing;
  for (const auto& [staleness, pushes] : result.counts.staleness) {
    const auto place = std::min<std::size_t>(staleness, report.staleness.size() - 1);
    report.staleness[place] += pushes;
    report.staleness_max = std::max(report.staleness_max, staleness);
    report.staleness_sum += static_cast<double>(staleness) * static_cast<double>(pushes);
  }
  return report;
}

StalenessSummary summarize_staleness(std::span<const ServerSlot> servers) {
  StalenessSummary summary;
  double sum = 0;
  std::int64_t pushes = 0;
  for (const ServerSlot& server : servers) {
    const ServerReport& report = server.report;
    summary.applied += static_cast<std::int64_t>(report.applied);
    summary.dropped += static_cast<std::int64_t>(report.dropped);
    summary.duplicates += static_cast<std::int64_t>(report.duplicates);
    summary.missing += static_cast<std::int64_t>(report.missing);
    summary.max = std::max(summary.max, static_cast<std::int64_t>(report.staleness_max));
    sum += report.staleness_sum;
    for (std::size_t staleness = 0; staleness < report.staleness.size(); ++staleness) {
      const auto count = static_cast<std::int64_t>(report.staleness[staleness]);
      if (count == 0) continue;
      summary.histogram[static_cast<std::int64_t>(staleness)] += count;
      pushes += count;
    }
  }
  if (pushes > 0) summary.mean = sum / static_cast<double>(pushes);
  return summary;
}

std::vector<ShardSummary> summarize_shards(std::span<const ServerSlot> servers) {
  std::vector<ShardSummary> all;
  for (const ServerSlot& server : servers) {
    const ServerReport& report = server.report;
    all.push_back({.server = static_cast<int>(all.size()),
                   .version = static_cast<std::int64_t>(report.version),
                   .applied = static_cast<std::int64_t>(report.applied),
                   .dropped = static_cast<std::int64_t>(report.dropped),
                   .duplicates = static_cast<std::int64_t>(report.duplicates),
                   .missing = static_cast<std::int64_t>(report.missing)});
  }
  return all;
}

}  // namespace cohort
