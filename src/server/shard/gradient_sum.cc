#include "server/shard/gradient_sum.h"

#include <algorithm>

#include "optimizer/square_sum.h"
#include "server/shard/aggregate.h"

namespace cohort {

void GradientSum::add(const PushedGradients& push) {
  if (pushes_ == 0) rows_.assign(shape_.tables.size(), RowSum());
  add_dense(push.dense, static_cast<float>(push.weight));
  ++pushes_;
  for (const RowsPushed& pushed : push.rows) {
    const RowGradients parts[] = {rows_[pushed.table].gradients(),
                                  {pushed.rows, pushed.values, push.weight}};
    rows_[pushed.table] = RowSum(parts, shape_.tables[pushed.table].width);
  }
  write_rows();
  make_views();
}

void GradientSum::add_dense(std::span<const float> dense, float weight) {
  const std::span<float> before = areas_[area_].dense;
  area_ = 1 - area_;
  const std::span<float> sum = areas_[area_].dense;
  if (pushes_ == 0) {
    std::ranges::fill(sum, 0.0f);
  } else if (sum.data() != before.data()) {
    for_each_piece(sum.size(), [&](std::size_t begin, std::size_t count) {
      std::ranges::copy(before.subspan(begin, count), sum.subspan(begin).begin());
      add_weighted(sum.subspan(begin, count), dense.subspan(begin, count), weight);
    });
    return;
  }
  add_weighted(sum, dense, weight);
}

void GradientSum::write_rows() {
  const std::vector<KeptRows>& tables = areas_[area_].tables;
  for (std::size_t table = 0; table < tables.size(); ++table) {
    const RowGradients sum = rows_[table].gradients();
    *tables[table].count = sum.rows.size();
    std::ranges::copy(sum.rows, tables[table].rows.begin());
    std::ranges::copy(sum.values, tables[table].values.begin());
  }
}

void GradientSum::restore(std::size_t area, std::size_t pushes) {
  area_ = area;
  pushes_ = pushes;
  rows_.assign(shape_.tables.size(), RowSum());
  for (std::size_t table = 0; table < areas_[area].tables.size(); ++table) {
    const KeptRows& kept = areas_[area].tables[table];
    const std::size_t width = shape_.tables[table].width;
    const RowGradients part{kept.rows.first(*kept.count), kept.values.first(*kept.count * width)};
    rows_[table] = RowSum({&part, 1}, width);
  }
  make_views();
}

void GradientSum::make_views() {
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
  return {.dense = areas_[area_].dense, .rows = row_views_};
}

double GradientSum::square_sum() const {
  double squares = sum_of_squares(areas_[area_].dense);
  for (const RowsPushed& rows : row_views_) squares += sum_of_squares(rows.values);
  return squares;
}

}  // namespace cohort
