#include "bench/results.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "bench/statistics.h"

namespace cohort {
namespace {

Spread spread_of(const std::vector<double>& values) {
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  return {median(values), *lowest, *highest};
}

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

auto is(const Metric& metric, const std::string& contender) {
  return
      [&](const auto& series) { return series.metric == metric && series.contender == contender; };
}

nlohmann::json json_of(const Spread& spread) {
  return {{"median", spread.median}, {"lowest", spread.lowest}, {"highest", spread.highest}};
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

}  // namespace cohort
