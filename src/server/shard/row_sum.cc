#include "server/shard/row_sum.h"

#include <algorithm>

#include "server/shard/aggregate.h"

namespace cohort {

RowSum::RowSum(std::span<const RowGradients> parts, std::size_t width) {
  for (const RowGradients& part : parts) {
    rows_.insert(rows_.end(), part.rows.begin(), part.rows.end());
  }
  std::ranges::sort(rows_);
  const auto repeated = std::ranges::unique(rows_);
  rows_.erase(repeated.begin(), repeated.end());
  values_.resize(rows_.size() * width);
  for (const RowGradients& part : parts) add(part, width);
}

void RowSum::add(const RowGradients& part, std::size_t width) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    while (rows_[at] != part.rows[i]) ++at;  // Both ascend, and every row of the part is in here.
    add_weighted(std::span(values_).subspan(at * width, width),
                 part.values.subspan(i * width, width), static_cast<float>(part.weight));
  }
}

}  // namespace cohort
