#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

enum class Unit { seconds, samples_per_second, bytes };

/// One thing that is measured of every contender, such as the time of a sum of 64 MiB.
struct Metric {
  std::string name;
  Unit unit = Unit::seconds;

  bool more_is_better() const { return unit == Unit::samples_per_second; }
  bool operator==(const Metric&) const = default;
};

struct Spread {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

/// What was measured: a value per metric, contender and round. Metrics and contenders keep the
/// order in which they first came.
class Results {
 public:
  /// One value of round `round`. A round of a contender that failed has none.
  void add(const Metric& metric, const std::string& contender, int round, double value);

  const std::vector<Metric>& metrics() const { return metrics_; }

  /// The contenders that have at least one value of the metric.
  std::vector<std::string> contenders(const Metric& metric) const;

  /// Of a contender that has a value.
  Spread spread(const Metric& metric, const std::string& contender) const;

  /// How many times better `better` is than `than`: more samples, or less time or memory. Each
  /// round gives one ratio of two runs close in time; their spread is the answer. Nothing where no
  /// round has both.
  std::optional<Spread> ratio(const Metric& metric, const std::string& better,
                              const std::string& than) const;

  /// Everything, the values of each round included; ratios are those of `reference`.
  nlohmann::json to_json(const std::string& reference) const;

 private:
  struct Series {
    Metric metric;
    std::string contender;
    std::vector<std::optional<double>> rounds;
  };

  const Series* find(const Metric& metric, const std::string& contender) const;

  std::vector<Metric> metrics_;
  std::vector<Series> series_;
};

}  // namespace cohort
