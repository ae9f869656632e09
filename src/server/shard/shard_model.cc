#include "server/shard/shard_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/failpoint.h"
#include "optimizer/optimizer.h"
#include "server/memory/copy_floats.h"

namespace cohort::server {
namespace {

double squares_of(const RowGradients& gradients) {
  return optimizer::sum_of_squares(gradients.values) * gradients.weight * gradients.weight;
}

void check_count(const char* what, std::size_t got, std::size_t wanted) {
  if (got == wanted) return;
  fail(ErrorCode::invalid, "the first model has {} {}; this server holds {}", got, what, wanted);
}

}  // namespace

TrainedFloats::TrainedFloats(const DenseArea& area, const optimizer::Optimizer& optimizer)
    : optimizer_(optimizer), area_(area) {}

void TrainedFloats::update_part(std::size_t offset, std::span<const float> gradients,
                                const optimizer::UpdateScalars& scalars) {
  part_slots_.clear();
  for (const std::span<float> slot : floats().slots) {
    part_slots_.push_back(slot.subspan(offset, gradients.size()));
  }
  optimizer_.update(values().subspan(offset, gradients.size()), gradients, part_slots_, scalars);
}

/// A block is small enough to stay in the cache through all that is done with it: it is saved,
/// summed, updated and copied to those who pull before the next one is touched.
double TrainedFloats::update(const Aggregate& gradients, const Update& update) {
  optimizer::UpdateScalars scalars = update.scalars;
  scalars.gradient_scale *= gradients.scale();
  scratch_.resize(std::min(values().size(), kBlockFloats));
  const CopyFloats copy_updated = way_to_copy(values().size_bytes());
  double squares = 0;
  for_each_block(values().size(), [&](std::size_t begin, std::size_t count) {
    save_floats(area_, begin, count);
    failpoint("server.in-update");
    const std::span<const float> block = gradients.block(begin, count, scratch_);
    if (update.want_norm) squares += optimizer::sum_of_squares(block);
    update_part(begin, block, scalars);
    for (const std::span<float> copy : update.copies) {
      copy_updated(values().subspan(begin, count), copy.subspan(begin));
    }
    failpoint("server.in-update");
  });
  return squares * gradients.scale() * gradients.scale();
}

RowTable::RowTable(const TableArea& area, const optimizer::Optimizer& optimizer)
    : area_(area), floats_({.now = area.floats}, optimizer) {}

void RowTable::copy_rows(std::span<const std::uint32_t> rows, std::span<float> out) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(floats().values.subspan(offset_of(rows[i]), width()),
                      out.subspan(i * width()).begin());
  }
}

// Only the rows that were touched change: their slots are as old as the row's last update, as in
// every sparse optimizer. They are saved all at once, being few, and not block by block as the
// dense floats are.
void RowTable::update(const RowGradients& gradients, const optimizer::UpdateScalars& scalars) {
  optimizer::UpdateScalars weighted = scalars;
  weighted.gradient_scale *= gradients.weight;
  const std::span<const std::uint32_t> rows = gradients.rows;
  save_rows(area_, rows);
  failpoint("server.in-update");
  // Neighbouring rows are updated together.
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    floats_.update_part(offset_of(rows[begin]),
                        gradients.values.subspan(begin * width(), (end - begin) * width()),
                        weighted);
    failpoint("server.in-update");
  }
}

std::size_t RowTable::offset_of(std::uint32_t row) const {
  return std::size_t{row - area_.shape.first_row} * area_.shape.width;
}

ShardModel::ShardModel(const ShardMemory& memory, const OptimizerOptions& optimizer)
    : optimizer_(optimizer::make_optimizer(optimizer)), dense_(memory.dense(), *optimizer_) {
  if (memory.slots() != optimizer_->slots().size()) {
    fail(ErrorCode::invalid, "a server's model has {} optimizer slots; {} needs {}", memory.slots(),
         optimizer.kind, optimizer_->slots().size());
  }
  for (const TableArea& table : memory.tables()) tables_.emplace_back(table, *optimizer_);
}

/// In the order of ModelMessage: dense values, dense slots, then the same of each table.
std::vector<std::span<float>> ShardModel::in_order() const {
  std::vector<std::span<float>> all;
  const auto add = [&](const FloatsArea& area) {
    all.push_back(area.values);
    all.insert(all.end(), area.slots.begin(), area.slots.end());
  };
  add(dense_.floats());
  for (const RowTable& table : tables_) add(table.floats());
  return all;
}

std::size_t ShardModel::floats() const {
  std::size_t sum = 0;
  for (const std::span<float> part : in_order()) sum += part.size();
  return sum;
}

void ShardModel::copy_to(std::span<float> all) const {
  for (const std::span<float> part : in_order()) {
    std::ranges::copy(part, all.begin());
    all = all.subspan(part.size());
  }
}

// The first model comes in stretches of any size, in the order of in_order(). It may bring slots,
// of a checkpoint of the same optimizer, or none, which then are zero.
void ShardModel::expect(const ModelMessage& head, std::size_t total) {
  const std::size_t slots = dense_.floats().slots.size();
  check_count("tables", head.shape.tables.size(), tables_.size());
  if (head.slots != 0) check_count("optimizer slots", head.slots, slots);
  check_count("floats", total, floats() / (1 + slots) * (1 + head.slots));
  expected_ = {};
  std::size_t index = 0;
  for (const std::span<float> part : in_order()) {
    const bool is_slot = index++ % (1 + slots) != 0;
    if (is_slot && head.slots == 0) {
      std::ranges::fill(part, 0.0f);
    } else {
      expected_.add(part);
    }
  }
}

void ShardModel::put(std::size_t begin, std::span<const float> floats) {
  expected_.put(begin, floats);
}

// One update, of all pushes of a round: the dense floats first, then every table that was touched.
// A server may be killed anywhere in it. All that changes was saved before, so its successor finds
// the model as it was before the update, or, once it is committed, as it is after it.
double ShardModel::update(std::span<const PushedGradients> pushes,
                          const TrainedFloats::Update& update) {
  failpoint("server.before-update");
  contributions_.clear();
  for (const PushedGradients& push : pushes) {
    contributions_.push_back({.values = push.dense, .weight = push.weight});
  }
  double squares = dense_.update(Aggregate(contributions_), update);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    squares += update_rows(t, rows_of(t, pushes), update);
  }
  return squares;
}

/// What each push that touches the table brings to it, in the order of the pushes.
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

}  // namespace cohort::server
