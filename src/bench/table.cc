#include "bench/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace cohort {
namespace {

struct Prefix {
  double factor;
  const char* name;
};

std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/// In the largest of the units that leaves at least 1; `units` from large to small.
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

}  // namespace cohort
