#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cohort {

/// Gradients of some rows of a table, by their number in the whole table.
struct RowGradients {
  std::span<const std::uint32_t> rows;  ///< Ascending, each once.
  std::span<const float> values;        ///< rows.size() rows.
  double weight = 1;
};

/// The weighted sum of several pushes' rows: every row that one of them has, once.
class RowSum {
 public:
  RowSum() = default;  ///< Of no rows.

  /// Sums in the order of `parts`; `width` is that of a row. Keeps a copy.
  RowSum(std::span<const RowGradients> parts, std::size_t width);

  RowGradients gradients() const { return {.rows = rows_, .values = values_}; }

 private:
  void add(const RowGradients& part, std::size_t width);

  std::vector<std::uint32_t> rows_;
  std::vector<float> values_;
};

}  // namespace cohort
