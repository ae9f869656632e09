#include "compression/matrices.h"

#include <algorithm>

namespace cohort {

std::vector<MatrixShape> matrices_within(const std::vector<MatrixShape>& all, std::size_t begin,
                                         std::size_t end) {
  std::vector<MatrixShape> within;
  for (const MatrixShape& matrix : all) {
    if (matrix.columns == 0 || end <= matrix.offset) continue;
    const std::size_t cut = begin > matrix.offset ? begin - matrix.offset : 0;
    const std::size_t first = (cut + matrix.columns - 1) / matrix.columns;
    const std::size_t last = std::min(matrix.rows, (end - matrix.offset) / matrix.columns);
    if (first >= last) continue;
    within.push_back({.offset = matrix.offset + first * matrix.columns - begin,
                      .rows = last - first,
                      .columns = matrix.columns});
  }
  return within;
}

}  // namespace cohort
