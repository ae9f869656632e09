#include "bench/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "bench/timing.h"

namespace cohort::bench {
namespace {

Spread spread_of(const std::vector<double>& values) {
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  return {median(values), *lowest, *highest};
}

/// In the JSON file.
const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return "seconds";
    case Unit::samples_per_second:
      return "samples_per_second";
    case Unit::bytes:
      return "bytes";
  }
  return "";
}

/// Finds a series; the two must live as long as what is returned.
auto is(const Metric& metric, const std::string& contender) {
  return
      [&](const auto& series) { return series.metric == metric && series.contender == contender; };
}

nlohmann::json json_of(const Spread& spread) {
  return {{"median", spread.median}, {"lowest", spread.lowest}, {"highest", spread.highest}};
}

// ---- the table

/// A unit by the name it is printed with, and how much of the metric's own unit it is.
struct Prefix {
  double factor;
  const char* name;
};

std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/// A value with its unit, in the largest of the units that leaves at least 1; `units` from large to
/// small.
std::string scaled(double value, const std::vector<Prefix>& units) {
  const auto fits = [&](const Prefix& unit) { return std::abs(value) >= unit.factor; };
  const auto found = std::find_if(units.begin(), units.end(), fits);
  const Prefix& unit = found == units.end() ? units.back() : *found;
  return three_digits(value / unit.factor) + " " + unit.name;
}

/// Terminals show a µ as one column; its two bytes must not count as two.
std::string padded(const std::string& text, std::size_t width) {
  const auto columns = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
  return std::string(width > columns ? width - columns : 0, ' ') + text;
}

}  // namespace

void Results::add(const Metric& metric, const std::string& contender, int round, double value) {
  if (std::find(metrics_.begin(), metrics_.end(), metric) == metrics_.end()) {
    metrics_.push_back(metric);
  }
  if (find(metric, contender) == nullptr) series_.push_back({metric, contender, {}});
  auto& rounds = std::find_if(series_.begin(), series_.end(), is(metric, contender))->rounds;
  const auto index = static_cast<std::size_t>(round);
  if (rounds.size() <= index) rounds.resize(index + 1);
  rounds[index] = value;
}

const Results::Series* Results::find(const Metric& metric, const std::string& contender) const {
  const auto found = std::find_if(series_.begin(), series_.end(), is(metric, contender));
  return found == series_.end() ? nullptr : &*found;
}

std::vector<std::string> Results::contenders(const Metric& metric) const {
  std::vector<std::string> names;
  for (const auto& series : series_) {
    if (series.metric == metric) names.push_back(series.contender);
  }
  return names;
}

Spread Results::spread(const Metric& metric, const std::string& contender) const {
  const Series* series = find(metric, contender);
  if (series == nullptr) {
    fail(ErrorCode::not_found, "{} has no value of {}", contender, metric.name);
  }
  std::vector<double> values;
  for (const auto& value : series->rounds) {
    if (value) values.push_back(*value);
  }
  return spread_of(values);
}

// Round by round, and only rounds that both have: the machine's speed changes from round to round,
// and a ratio within one round has little of that in it. The median of these ratios is what is
// reported, never the ratio of the medians.
std::optional<Spread> Results::ratio(const Metric& metric, const std::string& better,
                                     const std::string& than) const {
  const Series* a = find(metric, better);
  const Series* b = find(metric, than);
  if (a == nullptr || b == nullptr) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a->rounds.size(), b->rounds.size()); ++i) {
    if (!a->rounds[i] || !b->rounds[i]) continue;
    ratios.push_back(metric.more_is_better() ? *a->rounds[i] / *b->rounds[i]
                                             : *b->rounds[i] / *a->rounds[i]);
  }
  if (ratios.empty()) return std::nullopt;
  return spread_of(ratios);
}

nlohmann::json Results::to_json(const std::string& reference) const {
  auto metrics = nlohmann::json::array();
  for (const auto& metric : metrics_) {
    auto contenders_json = nlohmann::json::array();
    for (const auto& series : series_) {
      if (series.metric != metric) continue;
      auto entry = json_of(spread(metric, series.contender));
      entry["name"] = series.contender;
      for (const auto& value : series.rounds) {
        entry["rounds"].push_back(value ? nlohmann::json(*value) : nlohmann::json());
      }
      const auto better = ratio(metric, reference, series.contender);
      if (better && series.contender != reference) entry["ratio"] = json_of(*better);
      contenders_json.push_back(entry);
    }
    metrics.push_back(
        {{"name", metric.name}, {"unit", name_of(metric.unit)}, {"contenders", contenders_json}});
  }
  return metrics;
}

std::string format_value(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return scaled(value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}});
    case Unit::samples_per_second:
      return scaled(value, {{1e6, "M/s"}, {1e3, "k/s"}, {1, "/s"}});
    case Unit::bytes:
      return scaled(value, {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}});
  }
  return "";
}

std::string size_name(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10)
                           : fmt::format("{} MiB", bytes >> 20);
}

std::string format_table(const Results& results, const std::string& reference) {
  std::string text;
  for (const auto& metric : results.metrics()) {
    text += fmt::format("{:<48}{:>10}  {:>24}  {:>8}\n", metric.name, "median", "lowest..highest",
                        reference + " is");
    for (const auto& contender : results.contenders(metric)) {
      const Spread spread = results.spread(metric, contender);
      const std::string range = format_value(spread.lowest, metric.unit) + ".." +
                                format_value(spread.highest, metric.unit);
      const auto ratio = results.ratio(metric, reference, contender);
      const bool shown = ratio && contender != reference;
      text += fmt::format("  {:<46}{}  {}  {:>9}\n", contender,
                          padded(format_value(spread.median, metric.unit), 10), padded(range, 24),
                          shown ? three_digits(ratio->median) + "x" : "");
    }
    text += "\n";
  }
  return text;
}

}  // namespace cohort::bench
