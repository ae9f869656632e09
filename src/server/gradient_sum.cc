#include "server/gradient_sum.h"

#include <algorithm>

#include "optimizer/square_sum.h"
#include "server/aggregate.h"

namespace cohort {

void GradientSum::add(const PushedGradients& push) {
  if (pushes_ == 0) {
    if (dense_.bytes().empty()) dense_ = PrivateMemory(shape_.dense * sizeof(float));
    std::ranges::fill(dense_.floats(), 0.0f);
    rows_.assign(shape_.tables.size(), RowSum());
  }
  ++pushes_;
  add_weighted(dense_.floats(), push.dense, static_cast<float>(push.weight));
  for (const RowsPushed& pushed : push.rows) {
    const RowGradients parts[] = {rows_[pushed.table].gradients(),
                                  {pushed.rows, pushed.values, push.weight}};
    rows_[pushed.table] = RowSum(parts, shape_.tables[pushed.table].width);
  }
  row_views_.clear();
  for (std::uint32_t table = 0; table < rows_.size(); ++table) {
    const RowGradients sum = rows_[table].gradients();
    if (!sum.rows.empty()) row_views_.push_back({table, sum.rows, sum.values});
  }
}

void GradientSum::clear() {
  pushes_ = 0;
  rows_.clear();
  row_views_.clear();
}

PushedGradients GradientSum::gradients() const {
  return {.dense = dense_.floats(), .rows = row_views_};
}

double GradientSum::square_sum() const {
  double squares = sum_of_squares(dense_.floats());
  for (const RowsPushed& rows : row_views_) squares += sum_of_squares(rows.values);
  return squares;
}

}  // namespace cohort
