#include "server/shard/gradient_sum.h"

#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "base/vectorize.h"
#include "collective/sum_kernel.h"
#include "optimizer/optimizer.h"
#include "server/memory/copy_floats.h"

namespace cohort::server {
namespace {

COHORT_VECTORIZE void add_weighted_loop(float* __restrict into, const float* __restrict from,
                                        std::size_t count, float weight) {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i] * weight;
}

COHORT_VECTORIZE void weighted_loop(float* __restrict out, const float* __restrict from,
                                    std::size_t count, float weight) {
  for (std::size_t i = 0; i < count; ++i) out[i] = from[i] * weight;
}

/// into[i] += from[i] * weight. Both have the same size.
void add_weighted(std::span<float> into, std::span<const float> from, float weight) {
  add_weighted_loop(into.data(), from.data(), into.size(), weight);
}

[[noreturn]] void fail_kept() {
  fail(ErrorCode::corrupt, "a server's lasting memory has no sum of pushes that could be read");
}

/// What sums rely on.
void check_kept(std::span<const std::uint32_t> rows, const TableShape& shape) {
  const bool ascend = std::ranges::adjacent_find(rows, std::ranges::greater_equal()) == rows.end();
  if (!ascend ||
      (!rows.empty() && (rows.front() < shape.first_row || rows.back() >= shape.end_row)))
    fail_kept();
}

}  // namespace

Aggregate::Aggregate(std::span<const Contribution> contributions) : contributions_(contributions) {
  const double first = contributions_.front().weight;
  equal_weights_ =
      std::ranges::all_of(contributions_, [&](const auto& one) { return one.weight == first; });
  if (equal_weights_) scale_ = first;
}

// The sum of a block, made when the update comes to it: so the pushes are read once, where they
// are, and their sum never leaves the cache. One push alone is not even copied. Where all weights
// are equal the sum is made without them, and the optimizer multiplies by scale() anyway.
std::span<const float> Aggregate::block(std::size_t begin, std::size_t count,
                                        std::span<float> scratch) const {
  if (contributions_.size() == 1) return contributions_.front().values.subspan(begin, count);
  const std::span<float> sum = scratch.first(count);
  if (equal_weights_) {
    std::vector<const float*> sources;
    for (const Contribution& one : contributions_) sources.push_back(one.values.data() + begin);
    collective::sum_of(sum, sources);
    return sum;
  }
  const Contribution& first = contributions_.front();
  weighted_loop(sum.data(), first.values.data() + begin, count, static_cast<float>(first.weight));
  for (const Contribution& one : contributions_.subspan(1)) {
    add_weighted(sum, one.values.subspan(begin, count), static_cast<float>(one.weight));
  }
  return sum;
}

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

// The sum of pushes that wait for others to make an update with (a quorum, late ones). There are
// two areas for it in the shard's memory, and the new sum is always made in the one that the last
// commit does not speak of: killed here, a server leaves the old one as it was.
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

/// Leaves the sum in the area that did not have it. The old sum is copied block by block together
/// with the addition, so that the new one is read from the cache.
void GradientSum::add_dense(std::span<const float> dense, float weight) {
  const std::span<float> before = areas_[area_].dense;
  area_ = 1 - area_;
  const std::span<float> sum = areas_[area_].dense;
  if (pushes_ == 0) {
    std::ranges::fill(sum, 0.0f);
  } else if (sum.data() != before.data()) {
    for_each_block(sum.size(), [&](std::size_t begin, std::size_t count) {
      std::ranges::copy(before.subspan(begin, count), sum.subspan(begin).begin());
      add_weighted(sum.subspan(begin, count), dense.subspan(begin, count), weight);
    });
    return;
  }
  add_weighted(sum, dense, weight);
}

/// Rows are summed in this process and written whole: an area without tables is memory that does
/// not last, where nobody would look for them.
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
  if (area >= areas_.size()) fail_kept();
  area_ = area;
  pushes_ = pushes;
  rows_.assign(shape_.tables.size(), RowSum());
  for (std::size_t table = 0; table < areas_[area].tables.size(); ++table) {
    const KeptRows& kept = areas_[area].tables[table];
    const std::size_t width = shape_.tables[table].width;
    const std::uint64_t count = *kept.count;
    if (count > kept.rows.size()) fail_kept();
    const std::vector<std::uint32_t> rows(kept.rows.begin(), kept.rows.begin() + count);
    check_kept(rows, shape_.tables[table]);
    const RowGradients part{rows, kept.values.first(count * width)};
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
  double squares = optimizer::sum_of_squares(areas_[area_].dense);
  for (const RowsPushed& rows : row_views_) squares += optimizer::sum_of_squares(rows.values);
  return squares;
}

}  // namespace cohort::server
