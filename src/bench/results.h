#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cohort::bench {

/// From values of rounds to figures: the spread of each contender, the ratios between them, the
/// table for people and the JSON for programs.

enum class Unit { seconds, samples_per_second, bytes };

/// One thing that is measured of every contender, such as the time of a sum of 64 MiB.
struct Metric {
  std::string name;
  Unit unit = Unit::seconds;

  bool more_is_better() const { return unit == Unit::samples_per_second; }
  bool operator==(const Metric&) const = default;
};

/// Of some values, never of none.
struct Spread {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

/// What was measured: a value per metric, contender and round. Metrics and contenders keep the
/// order in which they first came. Not for several threads.
class Results {
 public:
  /// One value of round `round`. A round of a contender that failed has none.
  void add(const Metric& metric, const std::string& contender, int round, double value);

  const std::vector<Metric>& metrics() const { return metrics_; }

  /// The contenders that have at least one value of the metric.
  std::vector<std::string> contenders(const Metric& metric) const;

  /// Over the rounds that have a value. Throws Error(not_found) where none has.
  Spread spread(const Metric& metric, const std::string& contender) const;

  /// How many times better `better` is than `than`: more samples, or less time or memory. Each
  /// round gives one ratio of two runs close in time; their spread is the answer. It differs from
  /// the ratio of the two medians where the machine's speed has changed between rounds, and is the
  /// fairer of the two. Nothing where no round has both.
  std::optional<Spread> ratio(const Metric& metric, const std::string& better,
                              const std::string& than) const;

  /// Everything, the values of each round included; ratios are those of `reference`.
  nlohmann::json to_json(const std::string& reference) const;

 private:
  /// The values of one contender of one metric; a round without a value has nothing.
  struct Series {
    Metric metric;
    std::string contender;
    std::vector<std::optional<double>> rounds;
  };

  const Series* find(const Metric& metric, const std::string& contender) const;

  std::vector<Metric> metrics_;
  std::vector<Series> series_;
};

/// "57.2 ms", "13.6 k/s", "251 MB": three digits that count.
std::string format_value(double value, Unit unit);

/// "4 bytes", "64 KiB", "16 MiB", of a size that is a whole number of them.
std::string size_name(std::size_t bytes);

/// A paragraph per metric, a line per contender: median, lowest and highest of the rounds, and how
/// many times better `reference` is than it.
std::string format_table(const Results& results, const std::string& reference);

}  // namespace cohort::bench
