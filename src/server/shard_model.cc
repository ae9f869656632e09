#include "server/shard_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "optimizer/square_sum.h"

namespace cohort {
namespace {

Aggregate dense_sum(std::span<const PushedGradients> pushes) {
  std::vector<Contribution> contributions;
  for (const PushedGradients& push : pushes) {
    contributions.push_back({.values = push.dense, .weight = push.weight});
  }
  return Aggregate(std::move(contributions));
}

double squares_of(const RowGradients& gradients) {
  return sum_of_squares(gradients.values) * gradients.weight * gradients.weight;
}

void check_size(const std::string& what, std::size_t got, std::size_t wanted) {
  if (got == wanted) return;
  fail(ErrorCode::invalid, "the first model has {} floats {}; this server holds {}", got, what,
       wanted);
}

}  // namespace

ShardModel::ShardModel(const ShardShape& shape, const OptimizerOptions& optimizer)
    : optimizer_(make_optimizer(optimizer)), dense_(shape.dense, *optimizer_) {
  for (const TableShape& table : shape.tables) tables_.emplace_back(table, *optimizer_);
}

void ShardModel::initialise(std::span<const float> dense,
                            const std::vector<std::vector<float>>& tables) {
  check_size("outside tables", dense.size(), dense_.values().size());
  if (tables.size() != tables_.size()) {
    fail(ErrorCode::invalid, "the first model has {} tables; this server has {}", tables.size(),
         tables_.size());
  }
  for (std::size_t t = 0; t < tables.size(); ++t) {
    check_size(fmt::format("in table {}", t), tables[t].size(), tables_[t].values().size());
  }
  std::ranges::copy(dense, dense_.values().begin());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    std::ranges::copy(tables[t], tables_[t].values().begin());
  }
}

double ShardModel::update(std::span<const PushedGradients> pushes,
                          const TrainedFloats::Update& update) {
  double squares = dense_.update(dense_sum(pushes), update);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    squares += update_rows(t, rows_of(t, pushes), update);
  }
  return squares;
}

std::vector<RowGradients> ShardModel::rows_of(std::size_t table,
                                              std::span<const PushedGradients> pushes) const {
  std::vector<RowGradients> parts;
  for (const PushedGradients& push : pushes) {
    for (const RowsPushed& pushed : push.rows) {
      if (pushed.table == table) parts.push_back({pushed.rows, pushed.values, push.weight});
    }
  }
  return parts;
}

double ShardModel::update_rows(std::size_t table, std::span<const RowGradients> parts,
                               const TrainedFloats::Update& update) {
  if (parts.empty()) return 0;
  std::optional<RowSum> sum;  // One push alone is used where it stands.
  if (parts.size() > 1) sum.emplace(parts, tables_[table].width());
  const RowGradients gradients = sum ? sum->gradients() : parts.front();
  tables_[table].update(gradients, update.scalars);
  return update.want_norm ? squares_of(gradients) : 0;
}

}  // namespace cohort
